import fc from 'fast-check';
import { hostileName } from '../../../test/support/names/hostile-names.js';

/** Both ends of every range there is, and their neighbours. */
const NUMBERS = [
  [0, 1, 2, 9, 10, 31, 32, 49, 50, 51, 100, 200, 201, 999, 1_000, 10_000, 10_001, 60_000, 60_001, 1_000_000, 1_000_001],
  [3_600_000, 3_600_001, 86_400_000, 86_400_001, 2 ** 31 - 1, 2 ** 31, 2_592_000_001, 31_536_000_001],
  [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER + 1, 9e18, 1e21, Number.MAX_VALUE, Infinity, NaN, -0, 0.5, 50.5],
].flat();

/** Values that break what does not expect them. Made anew, because what gets them may keep them. */
const STRANGE: (() => unknown)[] = [
  () => null,
  () => Symbol('strange'),
  () => 50n,
  () => Object(50),
  () => new Date(50),
  () => () => 50,
  () => new Map(),
  () => Object.create(null),
  () => ({ valueOf: () => 50, toString: () => '50' }),
  () => ({ constructor: { name: Symbol('name') } }),
  () => ({ constructor: { name: { toString: undefined } } }),
  () => Object.assign([], { length: 3 }),
  () => [undefined],
  () => ['a', 'b'],
  () => [['a']],
  () => Promise.resolve(50),
  () => new Proxy({}, {}),
  () => Object.assign(() => 50, { next: 50 }),
  () => ({ next: () => NaN }),
  () => ({ next: () => 'soon' }),
  () => AbortSignal.abort(),
  () => new AbortController().signal,
  () => ({ aborted: true, addEventListener: () => undefined }),
  () => '__proto__',
  () => 'x'.repeat(100_000),
];

/** Anything at all. */
export const strangeValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...NUMBERS, ...NUMBERS.map((number) => -number)) },
  { weight: 3, arbitrary: fc.constantFrom(...STRANGE).map((make) => make()) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(undefined, true, false, '', '50', 'skip', 'wait', 'read', 'throw') },
  { weight: 1, arbitrary: hostileName },
  { weight: 1, arbitrary: fc.anything() },
);

/** What fits, for a call to get past its first check. */
const FITTING: Record<string, fc.Arbitrary<unknown>> = {
  mode: fc.constantFrom('exclusive', 'reentrant', 'read', 'write'),
  leaseMs: fc.constantFrom(50, 1_000, 30_000, 86_400_000),
  waitMs: fc.constantFrom(0, 1, 1_000, Infinity),
  watchdog: fc.boolean(),
  maxHoldMs: fc.constantFrom(50, 60_000, Number.MAX_SAFE_INTEGER),
  minHoldMs: fc.constantFrom(0, 1),
  attemptTimeoutMs: fc.constantFrom(1_000, 60_000),
  localHandOvers: fc.integer({ min: 0, max: 31 }),
  localHandOversMs: fc.constantFrom(0, 10, Number.MAX_SAFE_INTEGER),
  maxWaiters: fc.constantFrom(1, 10_000, Number.MAX_SAFE_INTEGER),
  backgroundRelease: fc.boolean(),
  ignoreTransaction: fc.boolean(),
  transactions: fc.constant({ current: () => undefined, runOnEnd: () => undefined }),
  retry: fc.constantFrom({ next: () => 1 }, { next: () => null }),
  count: fc.integer({ min: 1, max: 5 }),
  permits: fc.integer({ min: 1, max: 5 }),
  prefix: hostileName,
  limit: fc.integer({ min: 1, max: 10_000 }),
  fencingToken: fc.integer({ min: 1 }),
  ttlMs: fc.constantFrom(1_000, 2_592_000_000),
  id: hostileName,
  onElected: fc.constant(() => undefined),
  onDemoted: fc.constant(() => undefined),
  job: hostileName,
  tick: hostileName,
  overlap: fc.constantFrom('skip', 'wait'),
  onCrash: fc.constantFrom('skip', 'retry'),
  keepMs: fc.constantFrom(1, 1_000, Number.MAX_SAFE_INTEGER),
  lock: fc.constantFrom<unknown>({}, undefined, { leaseMs: 1_000 }),
  key: hostileName,
  name: hostileName,
  onBusy: fc.constantFrom('throw', 'skip'),
  onLost: fc.constantFrom('throw', 'ignore'),
  service: fc.constantFrom('default', 'other'),
  intervalMs: fc.integer({ min: 1, max: 1_000 }),
  maxAttempts: fc.constantFrom(1, 3, Infinity),
  initialMs: fc.integer({ min: 1, max: 1_000 }),
  maxMs: fc.integer({ min: 1, max: 1_000 }),
  factor: fc.constantFrom(1, 1.5, 10),
  jitter: fc.boolean(),
  token: fc.integer({ min: 1 }),
  keyPrefix: fc.constantFrom('lock', 'app:locks'),
  instanceId: fc.constantFrom('one', 'host:1'),
  observers: fc.constantFrom([], [() => undefined]),
  shutdown: fc.constantFrom({}, { drainMs: 0 }),
  connection: fc.constant('memory:'),
  global: fc.boolean(),
  signal: fc.constantFrom(undefined, 'quiet', 'aborted').map((kind) => {
    if (kind === undefined) return undefined;
    return kind === 'quiet' ? new AbortController().signal : AbortSignal.abort();
  }),
};

/**
 * An options object with any of these, most of them as they should be; in place of it sometimes anything else. So about half of
 * all calls go through.
 */
export function optionsOf(...names: string[]): fc.Arbitrary<unknown> {
  const each = Object.fromEntries(names.map((name) => [name, FITTING[name]!]));
  const fitting = fc.record(each, { requiredKeys: names.filter((name) => REQUIRED.has(name)) });
  const oneStrange = fc
    .record({ options: fitting, name: fc.constantFrom(...names), value: strangeValue })
    .map(({ options, name, value }) => ({ ...options, [name]: value }));
  const unknownName = fc
    .record({ options: fitting, name: fc.oneof(hostileName, fc.constant('leasems'), fc.constant('x'.repeat(50_000))) })
    .map(({ options, name }) => ({ ...options, [name]: 1 }));
  return fc.oneof(
    { weight: 6, arbitrary: fitting },
    { weight: 6, arbitrary: oneStrange },
    { weight: 1, arbitrary: unknownName },
    { weight: 1, arbitrary: strangeValue },
  );
}

/** Without these, a call says no more than that they are missing. */
const REQUIRED = new Set([
  'permits',
  'fencingToken',
  'job',
  'tick',
  'overlap',
  'onCrash',
  'keepMs',
  'intervalMs',
  'key',
  'name',
  'token',
  'connection',
]);
