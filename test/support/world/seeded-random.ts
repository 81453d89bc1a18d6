export { SeededRandom } from '../../../lib/testing/fleet/seeded-random.js';
