import { checkCampaignOptions } from '../../lib/core/leader/campaign-options.js';
import { checkLatch, checkLatchWait } from '../../lib/core/latch/countdown-latch.js';
import { InvalidLockOptionsError } from '../../lib/core/api/errors.js';
import { LeaseLostError } from '../../lib/core/api/lease-errors.js';
import { checkLockOptions, LOCK_DEFAULTS } from '../../lib/core/api/lock-options.js';
import { exponentialBackoff, fixedInterval } from '../../lib/core/api/retry.js';
import { readTransferOptions } from '../../lib/core/api/lease.js';
import { checkSemaphoreOptions, readCount } from '../../lib/core/semaphore/semaphore-options.js';
import { resolveSingletonRun } from '../../lib/core/singleton/singleton-run-options.js';
import { resolveLeaderOnly } from '../../lib/nest/leader/leader-only-options.js';
import { readSemaphorePlan } from '../../lib/nest/decorators/semaphore-decorator-options.js';
import { createLockService } from '../../lib/nest/module/create-lock-service.js';
import { resolveModuleOptions } from '../../lib/nest/module/module-options.js';
import { resolveJobOptions, TICK_OPTION_NAMES } from '../../lib/nest/schedule/singleton-options.js';
import { SingletonTimeout } from '../../lib/nest/schedule/singleton-timeout.decorator.js';
import type { AdoptOptions, RedisLockModuleOptions, RedisLockService } from '../../lib/index.js';
import { generateReference } from '../../tools/reference/reference.mjs';

const { options: tables } = (await generateReference()).declarations;
const MODULE = 'RedisLockModuleOptions & RedisLockModuleExtras';
const TICK = 'Omit<SingletonTickOptions, keyof SingletonJobOptions>';
const TIMEOUT = 'Omit<SingletonTimeoutOptions, keyof SingletonJobOptions>';
const SEMAPHORE = "Pick<DistributedSemaphoreOptions, 'key' | 'permits' | 'count'>";

describe('the options of the reference', () => {
  it('have the defaults that the library uses', () => {
    const { defaults, drainMs, keyPrefix, observers } = resolveModuleOptions({ connection: 'memory:' });
    const job = resolveJobOptions({}, 'x', TICK_OPTION_NAMES);
    const used: Record<string, unknown> = { ...defaults, 'shutdown.drainMs': drainMs, keyPrefix: `'${keyPrefix}'` };
    expect(defaults).toEqual(LOCK_DEFAULTS);
    expect(observers).toEqual([]);
    for (const [option, value] of Object.entries(used)) {
      expect([option, defaultIn(MODULE, option)]).toEqual([option, String(value)]);
    }
    const { permits } = readSemaphorePlan({ key: 'x', permits: 3 }, 'x');
    expect(defaultIn(SEMAPHORE, 'count')).toBe(String(permits!.count));
    expect(defaultIn('SingletonJobOptions', 'overlap')).toBe(`'${job.overlap}'`);
    expect(defaultIn(TICK, 'onCrash')).toBe(`'${job.onCrash}'`);
    expect(defaultIn(TICK, 'maxClockSkewMs')).toBe(String(job.maxClockSkewMs));
  });

  let locks: RedisLockService;
  beforeAll(async () => {
    locks = await createLockService(resolveModuleOptions({ connection: 'memory:' }));
  });
  afterAll(() => locks.beforeApplicationShutdown());

  /** A lease so short may be over before it is adopted: that is not about the option. */
  async function adopt(options: AdoptOptions): Promise<void> {
    const lease = await locks.acquire(`transferred-${++transferred}`);
    const adopted = locks.adopt(await lease.transfer(), options);
    await adopted.then(
      (adoptedLease) => adoptedLease.release(),
      (error: unknown) => {
        if (!(error instanceof LeaseLostError)) throw error;
      },
    );
  }
  let transferred = 0;

  /** How each type checks one option. */
  const checks: Record<string, (option: string, value: unknown) => unknown> = {
    [MODULE]: (option, value) =>
      resolveModuleOptions({ connection: 'memory:', ...moduleOption(option, value) } as RedisLockModuleOptions),
    LockOptions: (option, value) => checkLockOptions({ [option]: value }),
    'Parameters<typeof fixedInterval>[0]': (option, value) => fixedInterval({ intervalMs: 10, [option]: value }),
    'Parameters<typeof exponentialBackoff>[0]': (option, value) => exponentialBackoff({ [option]: value }),
    SemaphoreOptions: (option, value) => checkSemaphoreOptions({ [option]: value } as never, 'x'),
    'Omit<PermitOptions, keyof LockOptions>': (option, value) => readCount({ [option]: value }, 1_000_000),
    TransferOptions: (option, value) => readTransferOptions({ [option]: value }, 1_000),
    "Pick<AdoptOptions, 'leaseMs'>": (option, value) => adopt({ [option]: value }),
    CampaignOptions: (option, value) => checkCampaignOptions({ [option]: value }),
    LatchOptions: (option, value) => checkLatch('x', 1, { [option]: value }),
    LatchWaitOptions: (option, value) => checkLatchWait({ [option]: value }),
    ListOptions: (option, value) => locks.list({ [option]: value }),
    LeaderOnlyOptions: (option, value) => resolveLeaderOnly({ name: 'x', [option]: value }, 'x'),
    [SEMAPHORE]: (option, value) => readSemaphorePlan({ key: 'x', permits: 1_000_000, [option]: value }, 'x'),
    SingletonJobOptions: (option, value) => resolveJobOptions({ [option]: value }, 'x', TICK_OPTION_NAMES),
    [TICK]: (option, value) => resolveJobOptions({ [option]: value }, 'x', TICK_OPTION_NAMES),
    [TIMEOUT]: (option, value) => SingletonTimeout(1, { [option]: value }),
    SingletonRunOptions: (option, value) =>
      resolveSingletonRun(
        { job: 'x', tick: 'x', overlap: 'skip', onCrash: 'skip', keepMs: 1, lock: {}, [option]: value },
        LOCK_DEFAULTS,
      ),
  };

  const ranges = [...tables].flatMap(([type, options]) =>
    options.flatMap(({ name, allowed }) => {
      const range = parseRange(allowed);
      return range ? [[type, name, range] as const] : [];
    }),
  );

  it.each(ranges)('%s: %s takes its range and nothing outside of it', async (type, option, [min, max]) => {
    const check = async (value: number) => checks[type]!(option, value);
    await check(min);
    await expect(check(min - 1)).rejects.toThrow(InvalidLockOptionsError);
    await check(max);
    if (max < Number.MAX_SAFE_INTEGER) await expect(check(max + 1)).rejects.toThrow(InvalidLockOptionsError);
  });

  it('have ranges for every duration', () => {
    const durations = [...tables].flatMap(([type, options]) =>
      options.filter(({ name }) => name.endsWith('Ms')).map(({ name }) => [type, name]),
    );
    expect(ranges.map(([type, name]) => [type, name])).toEqual(expect.arrayContaining(durations));
  });
});

/** Beside others with which its whole range is allowed. */
function moduleOption(option: string, value: unknown): object {
  if (option === 'shutdown.drainMs') return { shutdown: { drainMs: value } };
  if (option === 'restartQuarantineMs') return { leaseMs: 50, restartQuarantineMs: value };
  const [, name] = option.split('durability.');
  if (!name) return { [option]: value };
  return { leaseMs: 60_000, attemptTimeoutMs: 60_000, durability: { replicas: 1, [name]: value } };
}

function defaultIn(type: string, option: string): string {
  return tables.get(type)!.find(({ name }) => name === option)!.default;
}

/** `50 ms to 24 h`, `0 ms and more`, `1 to 10`. Not lengths of texts. */
function parseRange(allowed: string): [min: number, max: number] | undefined {
  const units: Record<string, number> = { ms: 1, s: 1000, h: 3_600_000 };
  const match = /^(\d+)(?: (ms|s|h))?(?: to (\d+)(?: (ms|s|h))?| and more)(?:, or `Infinity`)?$/.exec(allowed);
  if (!match) return undefined;
  const [, min, minUnit = 'ms', max, maxUnit = 'ms'] = match;
  return [Number(min) * units[minUnit]!, max ? Number(max) * units[maxUnit]! : Number.MAX_SAFE_INTEGER];
}
