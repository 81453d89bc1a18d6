export { ManualClock as FakeClock } from '../../../lib/testing/fleet/manual-clock.js';
export { settle } from '../../../lib/kernel/util/promises.js';
