// The contestants. The code of each is in a file of its own name, which only worker processes import.

export const OURS = 'ours';

/** Milliseconds between two attempts of a package that polls, as tried under contention. */
const POLLING = {
  tunings: [{ retryMs: 3 }, { retryMs: 10 }, { retryMs: 50 }, { retryMs: 200 }],
  patient: { retryMs: 3 },
};
const FIXED = { tunings: [{}], patient: {} };

/**
 * @typedef {object} Contestant
 * @property {string} name the file that implements it, and after a colon which call of it
 * @property {string} label
 * @property {'ours' | 'call' | 'variant' | 'peer' | 'baseline'} kind
 * @property {string} [package] in tools/bench/package.json
 * @property {object[]} tunings settings that are tried under contention; the one with most leases/s is used
 * @property {object} patient the setting with which it hands over soonest
 * @property {string[]} [commands] those that it sends besides scripts, if all are known
 */

/** The other ways in which users of ours take a lock: each costs something else. */
export const CALLS = [
  { call: 'plain', label: 'acquire(name)' },
  { call: 'using', label: 'using()' },
];

/** @type {readonly Contestant[]} */
export const CONTESTANTS = [
  { name: 'ping', label: 'PING', kind: 'baseline', ...FIXED },
  { name: 'raw', label: 'raw SET NX + EVALSHA', kind: 'baseline', commands: ['set'], ...FIXED },
  { name: 'raw-fenced', label: 'raw with a fencing token', kind: 'baseline', commands: [], ...FIXED },
  { name: OURS, label: 'nestjs-redis-lock', kind: 'ours', commands: [], ...FIXED },
  ...CALLS.map(({ call, label }) => ({
    name: `${OURS}:${call}`,
    label: `  ${label}`,
    kind: 'call',
    commands: [],
    ...FIXED,
  })),
  { name: 'redis-semaphore', label: 'redis-semaphore', kind: 'peer', package: 'redis-semaphore', ...POLLING },
  { name: 'redlock', label: 'redlock', kind: 'peer', package: 'redlock', ...POLLING },
  {
    name: 'sesamecare-redlock',
    label: '@sesamecare-oss/redlock',
    kind: 'peer',
    package: '@sesamecare-oss/redlock',
    ...POLLING,
  },
  { name: 'redlock-universal', label: 'redlock-universal', kind: 'peer', package: 'redlock-universal', ...POLLING },
  {
    name: 'node-redisson',
    label: 'node-redisson',
    kind: 'peer',
    package: 'node-redisson',
    tunings: [{ leaseMs: 30_000 }, { leaseMs: 5_000 }],
    patient: { leaseMs: 30_000 },
  },
];

/**
 * An earlier commit, twice: how far its two results lie apart is what this machine does to equal code.
 *
 * @type {readonly Contestant[]}
 */
export const BEFORE = [
  { name: 'before', label: 'the commit before' },
  { name: 'before-again', label: 'the same once more' },
].map((one) => ({ ...one, kind: 'variant', commands: [], ...FIXED }));

/**
 * The fastest commit so far, beside another one: see fastest-commit.mjs.
 *
 * @type {Contestant}
 */
export const FIXED_BASE = { name: 'fixed-base', label: 'the fixed base', kind: 'variant', commands: [], ...FIXED };

/** A build of ours, once for each call. @param {Contestant} one @returns {readonly Contestant[]} */
export function eachCallOf(one) {
  return [one, ...CALLS.map(({ call, label }) => ({ ...one, name: `${one.name}:${call}`, label: `  ${label}` }))];
}

/** @returns {readonly Contestant[]} */
export function contestants(...kinds) {
  return CONTESTANTS.filter(({ kind }) => kinds.includes(kind));
}

/** @returns {Contestant} */
export function contestant(name) {
  return CONTESTANTS.find((candidate) => candidate.name === name);
}
