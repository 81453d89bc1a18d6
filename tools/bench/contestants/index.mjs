// Who takes part. What each one does is in a file of its own name, which only worker processes import: the packages it
// needs are not there when the reports are tested.

export const OURS = 'ours';

/** Milliseconds between two attempts of a package that polls, as tried under contention. */
const POLL_SETTINGS = [{ retryMs: 3 }, { retryMs: 10 }, { retryMs: 50 }, { retryMs: 200 }];

/**
 * @typedef {object} Contestant
 * @property {string} name also the file that implements it
 * @property {string} label
 * @property {'ours' | 'variant' | 'observed' | 'peer' | 'baseline' | 'quorum baseline'} kind `observed`: ours, in scenarios
 *   about what that costs
 * @property {boolean} [hasSemaphore] its clients have `semaphore(permits)`
 * @property {string} [package] in tools/bench/package.json
 * @property {string} configuration how it is set up, for the report
 * @property {object[]} tunings settings that are tried under contention; the one with most leases/s is used
 * @property {object} patient the setting with which it hands over soonest
 */

/** @type {readonly Contestant[]} */
export const CONTESTANTS = [
  {
    name: 'ping',
    label: 'PING',
    kind: 'baseline',
    configuration: 'One `PING` on an ioredis client with default options: the round trip itself.',
    tunings: [{}],
    patient: {},
  },
  {
    name: 'raw',
    label: 'raw SET NX + EVALSHA',
    kind: 'baseline',
    configuration:
      '`SET key <crypto.randomUUID()> PX 30000 NX`, then compare-and-delete by `EVALSHA` of a script loaded before, on an ioredis ' +
      'client with default options. No waiting, no renewal, no fencing token.',
    tunings: [{}],
    patient: {},
  },
  {
    name: 'raw-fenced',
    label: 'raw with a fencing token',
    kind: 'baseline',
    configuration:
      'As `raw`, but acquired by `EVALSHA` of a script: the same `SET`, then `INCR` of one fence for all resources. So it has a fencing ' +
      'token for the same round trip, as ours has. No waiting, no queue, no renewal.',
    tunings: [{}],
    patient: {},
  },
  {
    name: 'raw-quorum',
    label: 'raw SET NX + EVALSHA, majority',
    kind: 'quorum baseline',
    configuration:
      'As `raw`, sent to all nodes at once, each on a client of its own; `acquire` and `release` wait until a majority has answered.',
    tunings: [{}],
    patient: {},
  },
  {
    name: OURS,
    label: 'nestjs-redis-lock',
    kind: 'ours',
    configuration:
      'A Nest application context with `RedisLockModule.forRoot({ connection: url })`, all defaults (lease of 30 s, watchdog on); ' +
      "`acquire(resource, { waitMs: 60_000 })` and `lease.release()`; with `mode: 'read'` and `'write'` where there are readers; " +
      '`semaphore(resource, { permits })` for semaphores.',
    hasSemaphore: true,
    tunings: [{}],
    patient: {},
  },
  {
    name: 'ours-background',
    label: 'with backgroundRelease',
    kind: 'variant',
    configuration:
      'As `nestjs-redis-lock`, with `backgroundRelease: true`. Not the default, so no target is measured by it.',
    tunings: [{}],
    patient: {},
  },
  {
    name: 'ours-metrics',
    label: 'with metrics',
    kind: 'observed',
    configuration:
      'As `nestjs-redis-lock`, with `telemetry: openTelemetry({ traces: false })` and the SDK of OpenTelemetry.',
    tunings: [{}],
    patient: {},
  },
  {
    name: 'ours-traces',
    label: 'with traces',
    kind: 'observed',
    configuration:
      'As `nestjs-redis-lock`, with `telemetry: openTelemetry({ metrics: false })` and the SDK of OpenTelemetry. Every span is recorded.',
    tunings: [{}],
    patient: {},
  },
  {
    name: 'redis-semaphore',
    label: 'redis-semaphore',
    kind: 'peer',
    package: 'redis-semaphore',
    configuration:
      '`Mutex`, or `Semaphore` for semaphores, `lockTimeout` 30 s, `refreshInterval: 0` (no timer for each lock), ' +
      '`acquireTimeout` 60 s. Polls.',
    hasSemaphore: true,
    tunings: POLL_SETTINGS,
    patient: { retryMs: 3 },
  },
  {
    name: 'redlock',
    label: 'redlock',
    kind: 'peer',
    package: 'redlock',
    configuration:
      'One Redis, 30 s, `acquire` and `release` (no automatic extension), `retryCount: -1`, jitter of half the delay. Polls.',
    tunings: POLL_SETTINGS,
    patient: { retryMs: 3 },
  },
  {
    name: 'sesamecare-redlock',
    label: '@sesamecare-oss/redlock',
    kind: 'peer',
    package: '@sesamecare-oss/redlock',
    configuration: 'As `redlock`.',
    tunings: POLL_SETTINGS,
    patient: { retryMs: 3 },
  },
  {
    name: 'redlock-universal',
    label: 'redlock-universal',
    kind: 'peer',
    package: 'redlock-universal',
    configuration:
      "`createLock` with `performance: 'lean'` on its `IoredisAdapter`, one lock object for each resource, 30 s, `acquire` and " +
      '`release` (no automatic extension). Polls. It asks for Node 22.',
    tunings: POLL_SETTINGS,
    patient: { retryMs: 3 },
  },
  {
    name: 'node-redisson',
    label: 'node-redisson',
    kind: 'peer',
    package: 'node-redisson',
    configuration:
      '`getLock(resource).lock(leaseMs)` and `unlock()`, with a lease given and so without its watchdog. Waits for a message; ' +
      'a waiter that misses it sleeps until the lease it saw would end, so a shorter lease is tried under contention too.',
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
].map((one) => ({ ...one, kind: 'variant', configuration: 'As `nestjs-redis-lock`.', tunings: [{}], patient: {} }));

/** @returns {readonly Contestant[]} */
export function contestants(...kinds) {
  return CONTESTANTS.filter(({ kind }) => kinds.includes(kind));
}

/** @returns {Contestant} */
export function contestant(name) {
  return CONTESTANTS.find((candidate) => candidate.name === name);
}
