import fc from 'fast-check';
import {
  DistributedLock,
  DistributedSemaphore,
  exponentialBackoff,
  fixedInterval,
  LeaderOnly,
  type Lease,
  LockHandler,
  ReadLock,
  RedisLockModule,
  type RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { fence } from 'nestjs-redis-lock/fence';
import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { hostileName } from '../../../test/support/names/hostile-names.js';
import { optionsOf, strangeValue } from './option-values.js';

/** What a call is made with: of any type, as those of a user without a compiler may be. */
type Any = never;
/** The most that one of these calls takes. */
type Given = [Any, Any, Any, Any, Any];

/** One public function: what it may be given, and how to call it and clear away what came of it. */
export interface OptionCall {
  readonly name: string;
  readonly given: fc.Arbitrary<readonly unknown[]>;
  call(locks: RedisLockService, ...given: Given): unknown;
}

const words = (text: string): string[] => text.split(' ');
const LOCK = words(
  'leaseMs waitMs watchdog maxHoldMs minHoldMs attemptTimeoutMs localHandOvers localHandOversMs maxWaiters backgroundRelease ' +
    'ignoreTransaction onLost retry',
);
const DECORATION = words('key onBusy service');
const JOB = words('name overlap service leaseMs waitMs maxHoldMs attemptTimeoutMs');
const MODULE = words('connection keyPrefix instanceId observers shutdown transactions global').concat(
  words('leaseMs waitMs watchdog attemptTimeoutMs localHandOvers localHandOversMs maxWaiters backgroundRelease'),
);

const resource = fc.oneof({ weight: 5, arbitrary: hostileName }, { weight: 1, arbitrary: strangeValue });
const resources = fc.oneof(resource, fc.array(resource, { maxLength: 4 }));
const args = (...given: fc.Arbitrary<unknown>[]) => fc.tuple(...given);
const lockOptions = optionsOf('mode', ...LOCK, 'signal');
const permitOptions = optionsOf('count', ...LOCK, 'signal');
const work = fc.oneof(
  { weight: 5, arbitrary: fc.constant(async () => 'done') },
  // What a function of the caller throws is the caller's.
  { weight: 1, arbitrary: strangeValue.filter((value) => typeof value !== 'function') },
);

/** Runs every command in scripts, and answers 'ok'. */
const FENCED = {
  call: async (name: string, args: string[]) =>
    name === 'command' ? args.slice(1).map((each) => [each, -1, []]) : ['ok'],
};

/** The options of every public function. None of them waits for anything: each call has its resource for itself. */
export const OPTION_CALLS: readonly OptionCall[] = [
  define('acquire', args(resources, lockOptions), async (locks, name, options) =>
    end(await locks.acquire(name, options)),
  ),
  define('tryAcquire', args(resources, lockOptions), async (locks, name, options) =>
    end(await locks.tryAcquire(name, options)),
  ),
  define('using', args(resources, lockOptions, work), (locks, name, options, done) => locks.using(name, options, done)),
  define('tryUsing', args(resources, lockOptions, work), (locks, name, options, done) =>
    locks.tryUsing(name, options, done),
  ),
  define('inspect', args(resource), (locks, name) => locks.inspect(name)),
  define('list', args(optionsOf('prefix', 'limit')), (locks, options) => locks.list(options)),
  define('forceRelease', args(resource, optionsOf('fencingToken')), (locks, name, options) =>
    locks.forceRelease(name, options),
  ),
  define('assertLocked', args(resources), (locks, name) => locks.assertLocked(name)),
  define('currentOrThrow', args(resource), (locks, name) => locks.using(name, () => locks.currentOrThrow(name))),
  define('current', args(resource), (locks, name) => locks.current(name)),
  define('observe', args(strangeValue), (locks, observer) => locks.observe(observer)()),
  define('semaphore', args(resource, optionsOf('permits'), permitOptions), async (locks, name, options, permit) =>
    end(await locks.semaphore(name, options).tryAcquire(permit)),
  ),
  define('semaphore.using', args(resource, permitOptions, work), (locks, name, options, done) =>
    locks.semaphore(name, { permits: 5 }).using(options, done),
  ),
  define('semaphore.tryUsing', args(resource, permitOptions, work), (locks, name, options, done) =>
    locks.semaphore(name, { permits: 5 }).tryUsing(options, done),
  ),
  define(
    'lease.releasePermits',
    args(resource, fc.oneof(fc.integer({ min: 0, max: 5 }), strangeValue)),
    (locks, name, count) =>
      locks.semaphore(name, { permits: 5 }).using({ count: 4 }, (lease) => lease.releasePermits(count)),
  ),
  define('semaphore.resize', args(resource, strangeValue), (locks, name, permits) =>
    locks.semaphore(name, { permits: 5 }).resize(permits),
  ),
  define(
    'campaign',
    args(resource, optionsOf('leaseMs', 'onElected', 'onDemoted', 'signal')),
    async (locks, name, options) => {
      const leadership = locks.campaign(name, options);
      await leadership.resign();
    },
  ),
  define('leadership', args(resource), (locks, name) => locks.leadership(name)),
  define(
    'runSingleton',
    args(optionsOf('job', 'tick', 'overlap', 'onCrash', 'keepMs', 'lock'), work),
    (locks, options, done) => locks.runSingleton(options, done),
  ),
  define(
    'runSingleton, its lock',
    args(hostileName, optionsOf('leaseMs', 'waitMs', 'maxHoldMs', 'attemptTimeoutMs')),
    (locks, job, lock) =>
      locks.runSingleton({ job, tick: 'now', overlap: 'skip', onCrash: 'skip', keepMs: 1, lock }, async () => 'done'),
  ),
  define('lease', args(strangeValue, strangeValue), async (locks, leaseMs, name) => {
    const lease = await locks.acquire('the lease');
    try {
      await lease.extend(leaseMs);
      lease.fencingTokenOf(name);
    } finally {
      await lease.release();
    }
  }),
  define('transfer', args(optionsOf('leaseMs')), async (locks, options) => {
    const lease = await locks.acquire(['hand', 'over']);
    try {
      await end(await locks.adopt(await lease.transfer(options)));
    } finally {
      await lease.release();
    }
  }),
  define(
    'adopt',
    args(optionsOf('leaseMs', 'waitMs', 'watchdog', 'maxHoldMs', 'attemptTimeoutMs', 'backgroundRelease')),
    async (locks, options) => {
      const text = await (await locks.acquire('adopted')).transfer();
      try {
        await end(await locks.adopt(text, options));
      } catch (error) {
        await end(await locks.adopt(text));
        throw error;
      }
    },
  ),
  define(
    'usingAdopted',
    args(optionsOf('leaseMs', 'waitMs', 'watchdog', 'maxHoldMs', 'attemptTimeoutMs', 'backgroundRelease'), work),
    async (locks, options, done) => {
      const text = await (await locks.acquire('adopted')).transfer();
      try {
        await locks.usingAdopted(text, options, done);
      } catch (error) {
        await locks.usingAdopted(text, () => {}).catch(() => {});
        throw error;
      }
    },
  ),
  define('adopt, its text', args(fc.oneof(strangeValue, forgedText())), async (locks, text) =>
    end(await locks.adopt(text)),
  ),
  define('fixedInterval', args(optionsOf('intervalMs', 'maxAttempts')), (_locks, options) =>
    ask(fixedInterval(options)),
  ),
  define(
    'exponentialBackoff',
    args(optionsOf('initialMs', 'maxMs', 'factor', 'jitter', 'maxAttempts')),
    (_locks, options) => ask(exponentialBackoff(options)),
  ),
  define('forRoot', args(optionsOf(...MODULE)), (_locks, options) => RedisLockModule.forRoot(options)),
  define('forRootAsync', args(optionsOf(...MODULE)), async (_locks, options) => {
    const { providers } = RedisLockModule.forRootAsync({ useFactory: () => options });
    const [first] = providers as { useFactory: () => Promise<unknown> }[];
    await first!.useFactory();
  }),
  define('fence.guard', args(optionsOf('key', 'token', 'ttlMs'), strangeValue), (_locks, options, commands) =>
    fence.guard(FENCED as Any, options, commands),
  ),
  decorator('DistributedLock', optionsOf(...DECORATION, ...LOCK, 'mode'), DistributedLock),
  decorator('LockHandler', optionsOf(...DECORATION, ...LOCK, 'mode'), LockHandler),
  decorator('ReadLock', optionsOf(...DECORATION, ...LOCK), ReadLock),
  decorator('WriteLock', optionsOf(...DECORATION, ...LOCK), WriteLock),
  decorator('DistributedSemaphore', optionsOf(...DECORATION, ...LOCK, 'permits', 'count'), DistributedSemaphore),
  decorator('LeaderOnly', optionsOf('name', 'leaseMs', 'onLost', 'service'), LeaderOnly),
  decorator('SingletonCron', optionsOf(...JOB, 'onCrash'), (options: Any) => SingletonCron('* * * * *', options)),
  decorator('SingletonInterval', optionsOf(...JOB), (options: Any) => SingletonInterval(1_000, options)),
  decorator('SingletonTimeout', optionsOf(...JOB), (options: Any) => SingletonTimeout(1_000, options)),
];

function define(
  name: string,
  given: fc.Arbitrary<readonly unknown[]>,
  call: (locks: RedisLockService, ...given: Given) => unknown,
): OptionCall {
  return { name, given, call };
}

/** On a method of a class of its own. */
function decorator(name: string, options: fc.Arbitrary<unknown>, decorate: (options: Any) => unknown): OptionCall {
  return define(name, args(fc.oneof({ weight: 4, arbitrary: options }, resources)), (_locks, given) => {
    class Subject {
      async method(): Promise<void> {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Subject.prototype, 'method')!;
    (decorate(given) as MethodDecorator)(Subject.prototype, 'method', descriptor);
  });
}

async function end(lease: Lease | null): Promise<void> {
  await lease?.release();
}

/** Whatever it says has to be a pause. */
function ask(strategy: ReturnType<typeof fixedInterval>): void {
  for (let attempt = 1; attempt < 3_000; attempt *= 2) {
    const state = { attempt, elapsedMs: 1, lastAttempt: 'busy', holderTtlMs: 1, random: Math.random } as const;
    const pauseMs = strategy.next(state);
    if (pauseMs !== null && !(pauseMs > 0 && pauseMs <= 86_400_000)) throw new RangeError(`a pause of ${pauseMs} ms`);
  }
}

/** Nearly what transfer() gives. */
function forgedText(): fc.Arbitrary<string> {
  const field = fc.oneof(strangeValue, hostileName, fc.constantFrom('i/x/y', 'read', 'semaphore'));
  return fc
    .array(fc.oneof(fc.array(field, { maxLength: 8 }), field), { maxLength: 3 })
    .map((fields) => `lease1.${Buffer.from(printed(fields)).toString('base64url')}`);
}

function printed(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '';
  }
}
