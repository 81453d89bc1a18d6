// What each command of tests runs, part by part.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jest, LONG, SLOW } from './jest.mjs';
import { root } from './setup.mjs';

const NODE = process.execPath;
const CHAOS = join(root, 'scripts/chaos.mjs');
const PACKAGE = join(root, 'test/package/run.mjs');
/** The consumer that stands for the others. */
const CONSUMER = 'nest12-esm-jest';

/**
 * Arguments for Node: of what runs in front, one after the other, and of what runs beside that. Most suites wait more than they work:
 * with three of them, two cores are busy for 60 of 100 seconds, and with six, and the package, the model or chaos beside them, for
 * nearly all of it.
 *
 * @typedef {Record<string, readonly string[]>} Lane
 * @typedef {Record<string, string | undefined>} Environment
 * @type {Record<string, (without?: { tests?: readonly string[], consumers?: boolean }) => { front: Lane, beside?: Lane }>}
 */
export const PARTS = {
  test: () => ({
    front: {
      tests: jest('--selectProjects', 'unit', 'stores', 'nest', 'docs', ...without(LONG, SLOW), '--maxWorkers=4'),
    },
  }),
  // `tests` are patterns of test files that do not run.
  all: ({ tests = [], consumers = true } = {}) => ({
    front: { tests: jest('--ignoreProjects', 'chaos', ...without(LONG, ...tests), '--maxWorkers=6') },
    beside: {
      package: consumers ? [PACKAGE] : [PACKAGE, CONSUMER],
      chaos: jest('--selectProjects', 'chaos', ...without(LONG, ...tests), '--maxWorkers=2'),
    },
  }),
  long: () => ({
    front: {
      simulations: jest('--selectProjects', 'unit', 'stores', '--maxWorkers=2'),
      amounts: jest(
        '--ignoreProjects',
        'unit',
        'stores',
        'chaos',
        '--maxWorkers=3',
        '--runTestsByPath',
        ...withLongForm(),
      ),
      chaos: [CHAOS],
    },
    beside: { package: [PACKAGE] },
  }),
};

/**
 * Runs the parts of a command. What is beside the others begins when the one before it has ended, and `others`: they share what the
 * front leaves of two cores. Where nothing runs in front any more, it begins at once.
 *
 * @param {import('./ci/stages.mjs').Stages} stages
 * @param {{ front: Lane, beside?: Lane }} parts
 * @param {{ env: Environment, envOf?: Record<string, Environment>, others?: Promise<unknown> }} options `envOf`: what a part has beside that
 */
export async function runParts(stages, { front, beside = {} }, { env, envOf = {}, others }) {
  const optionsOf = (name) => ({ env: { ...env, ...envOf[name] } });
  const inFront = (async () => {
    for (const [name, args] of Object.entries(front)) await stages.front(name, NODE, args, optionsOf(name));
  })();
  const started = [inFront];
  for (const [index, [name, args]] of Object.entries(beside).entries()) {
    if (index > 0) await Promise.race([inFront, Promise.all([others, started.at(-1)])]);
    started.push(stages.beside(name, NODE, args, optionsOf(name)));
  }
  await Promise.all(started);
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

/** The test files that try more in the long form: more processes, kills, surroundings. */
function withLongForm() {
  return ['test', 'sample-app/test']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules') && hasLongForm(file));
}

function hasLongForm(file) {
  return /process\.env(?:\.TEST_SPEED|\['TEST_SPEED'\]) === 'long'/.test(readFileSync(join(root, file), 'utf8'));
}

function without(...patterns) {
  return ['--testPathIgnorePatterns', ...patterns];
}
