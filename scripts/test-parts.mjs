// What each command of tests runs, part by part.
import { join } from 'node:path';
import { jest, LONG, SLOW } from './jest.mjs';
import { root } from './setup.mjs';

const CHAOS = join(root, 'scripts/chaos.mjs');
const PACKAGE = join(root, 'test/package/run.mjs');
/** The consumer that stands for the others. */
const CONSUMER = 'nest12-esm-jest';

/** Jest projects of tests that wait for servers and processes more than they work. */
const WAITING = ['servers', 'stores', 'nest', 'sample-app', 'stacks'];
/** And of those that work more than they wait. */
const WORKING = ['unit', 'docs', 'site'];

/**
 * Arguments for Node.
 *
 * @type {Record<string, (without?: { tests?: readonly string[], consumers?: boolean }) => Record<string, readonly string[]>>}
 */
export const PARTS = {
  test: () => ({
    tests: jest('--selectProjects', 'unit', 'stores', 'nest', 'docs', ...without(LONG, SLOW), '--maxWorkers=4'),
  }),
  // `tests` are patterns of test files that do not run. Two cores are enough for all that wait at once: see runTogether().
  all: ({ tests = [], consumers = true } = {}) => ({
    waiting: jest('--selectProjects', ...WAITING, ...without(LONG, ...tests), '--maxWorkers=5'),
    chaos: jest('--selectProjects', 'chaos', ...without(LONG, ...tests), '--maxWorkers=2'),
    working: jest('--selectProjects', ...WORKING, ...without(LONG, ...tests), '--maxWorkers=2'),
    package: consumers ? [PACKAGE] : [PACKAGE, CONSUMER],
  }),
  long: () => ({
    simulations: jest('--selectProjects', 'unit', 'stores', '--maxWorkers=2'),
    chaos: [CHAOS],
    package: [PACKAGE],
  }),
};

/**
 * Runs the parts of `all` beside each other. What waits is in front, and what works has the time that it leaves.
 *
 * @param {import('./ci/stages.mjs').Stages} stages
 * @param {ReturnType<typeof PARTS.all>} parts
 * @param {NodeJS.ProcessEnv} env
 * @param {() => Promise<void>} [more] what else runs behind, after the package
 */
export async function runTogether(stages, parts, env, more = async () => {}) {
  const besidePackage = async () => {
    await stages.behind('package', process.execPath, parts.package, { env });
    await more();
  };
  await Promise.all([
    stages.front('tests that wait', process.execPath, parts.waiting, { env }),
    stages.beside('chaos', process.execPath, parts.chaos, { env }),
    stages.behind('tests that work', process.execPath, parts.working, { env }),
    besidePackage(),
  ]);
}

/** What simulations and races take their seeds from. Chaos has one of its own, and prints it. */
const SEEDS = ['SIMULATION_SEED', 'RACE_SEED'];

/**
 * The long form looks elsewhere each time, and says how to look there again.
 *
 * @param {string} name of the command
 * @param {number} seed by chance
 * @returns {Record<string, string>} for the environment
 */
export function seedsOf(name, seed) {
  if (name !== 'long') return {};
  const seeds = Object.fromEntries(SEEDS.map((variable) => [variable, process.env[variable] ?? String(seed)]));
  console.log(
    `The same again: ${Object.entries(seeds)
      .map((entry) => entry.join('='))
      .join(' ')} npm run test:long`,
  );
  return seeds;
}

function without(...patterns) {
  return ['--testPathIgnorePatterns', ...patterns];
}
