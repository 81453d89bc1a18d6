export { ManualClock as FakeClock } from '../../../lib/testing/fleet/manual-clock.js';
export { settle } from '../../../lib/core/util/promises.js';
