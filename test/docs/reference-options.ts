// A part of reference.test.ts: both ask what the declarations of lib/ say.
import { InvalidLockOptionsError } from '../../lib/kernel/api/errors.js';
import { CONSOLE_OPTIONS } from '../../lib/extras/console/nest/console-options.js';
import { LOCK_DEFAULTS, LOCK_OPTIONS, resolveLockDefaults } from '../../lib/kernel/api/lock-options.js';
import { without } from '../../lib/kernel/api/validation.js';
import {
  BACKOFF_OPTIONS,
  exponentialBackoff,
  FIXED_INTERVAL_OPTIONS,
  fixedInterval,
} from '../../lib/kernel/api/retry.js';
import { CAMPAIGN_OPTIONS } from '../../lib/features/leader/core/leadership.js';
import { OPEN_TELEMETRY_OPTIONS } from '../../lib/extras/telemetry/open-telemetry/open-telemetry.js';
import { WAIT_UNTIL_FREE_OPTIONS } from '../../lib/features/watch/core/lock-watches.js';
import { HEALTH_INDICATOR_OPTIONS } from '../../lib/features/fleet/nest/redis-lock-health.js';
import { FLEET_OPTIONS } from '../../lib/features/fleet/core/roll/lock-fleet.js';
import { HEALTH_OPTIONS } from '../../lib/features/fleet/core/health/health-checks.js';
import { CONTENTION_OPTIONS, CONTENTION_SETTINGS } from '../../lib/features/fleet/core/contention/contention.js';
import { EXPLAIN_OPTIONS } from '../../lib/features/fleet/core/explain/explainer.js';
import { FORCE_RELEASE_OPTIONS, LIST_OPTIONS } from '../../lib/features/fleet/core/operators.js';
import {
  checkPermitOptions,
  checkSemaphoreOptions,
  PERMIT_OPTIONS,
  SEMAPHORE_OPTIONS,
} from '../../lib/kernel/semaphore/semaphore-options.js';
import { resolveSingletonRun, SINGLETON_RUN_OPTIONS } from '../../lib/features/jobs/core/singleton-run-options.js';
import {
  DECORATOR_OPTIONS,
  LOCK_DECORATOR_OPTIONS,
  readSemaphorePlan,
  SEMAPHORE_DECORATOR_OPTIONS,
} from '../../lib/nest/decorators/lock-plan.js';
import { LOCK_EXCEPTION_FILTER_OPTIONS, LockExceptionFilter } from '../../lib/nest/handlers/lock-exception.filter.js';
import {
  ADDED_CRON_OPTIONS,
  ADDED_DATE_OPTIONS,
  ADDED_INTERVAL_OPTIONS,
  checkAddedJob,
  HISTORY_OPTIONS,
  PAUSE_OPTIONS,
  RESUME_OPTIONS,
  RUN_NOW_OPTIONS,
} from '../../lib/features/jobs/nest/added/job-options.js';
import { checkOnceOptions, ONCE_OPTIONS } from '../../lib/features/once/core/once-options.js';
import { LEADER_ONLY_OPTIONS, resolveLeaderOnly } from '../../lib/features/leader/nest/leader-only.decorator.js';
import { createLockService } from '../../lib/nest/module/create-lock-service.js';
import {
  EXTRA_OPTIONS,
  MODULE_OPTIONS,
  resolveModuleOptions,
  SHUTDOWN_OPTIONS,
} from '../../lib/nest/module/module-options.js';
import { DURABILITY_OPTIONS, QUORUM_OPTIONS } from '../../lib/nest/module/store-options.js';
import { EXCLUSIVE_OPTIONS } from '../../lib/testing/assertions/exclusive.js';
import { HELD_DURING_OPTIONS } from '../../lib/testing/assertions/held-during.js';
import { HOLD_ELSEWHERE_OPTIONS } from '../../lib/testing/hold-elsewhere.js';
import { RUN_JOB_OPTIONS } from '../../lib/features/jobs/testing/test-jobs.js';
import { EXPLORE_OPTIONS, resolveExploreOptions } from '../../lib/extras/races/explore-options.js';
import { RACE_POINT_OPTIONS, RACED_OPTIONS } from '../../lib/extras/races/raced.js';
import { TEST_LOCKS_OPTIONS } from '../../lib/testing/redis-lock-testing.module.js';
import { JOB_OPTIONS, resolveJobOptions, TICK_OPTIONS } from '../../lib/features/jobs/nest/singleton-options.js';
import { TIMEOUT_OPTIONS } from '../../lib/features/jobs/nest/singleton-timed.decorators.js';
import { TYPEORM_TRANSACTIONAL_OPTIONS } from '../../lib/features/transactions/nest/typeorm-transactional.js';
import type { RedisLockModuleOptions, RedisLockService } from '../../lib/index.js';
import { options as tables } from './generated.js';

const MODULE =
  "Omit<RedisLockModuleOptions & RedisLockModuleExtras, Exclude<keyof LockDefaults, 'restartQuarantineMs'>>";
const TICK = 'Omit<SingletonTickOptions, keyof SingletonJobOptions>';
const TIMEOUT = 'Omit<SingletonTimeoutOptions, keyof SingletonJobOptions>';
const SEMAPHORE = "Pick<SemaphoreDecoratorOptions, 'key' | 'permits' | 'count'>";

const LOCK_DECORATORS = "Omit<LockDecoratorOptions, Exclude<keyof LockOptions, 'onBusy' | 'label' | 'onWait'>>";
const ONCE = "Omit<OnceDecoratorOptions, Exclude<keyof LockOptions, 'waitMs'>>";
const INDICATOR = 'Omit<RedisLockHealthOptions, keyof HealthOptions>';
const PERMITS = 'Omit<PermitOptions, keyof LockOptions>';
const ADDED_CRON = "Pick<AddedCronJob, 'name' | 'cron' | 'timeZone' | 'utcOffset'>";
const ADDED_INTERVAL = "Pick<Extract<AddedJob, { intervalMs: unknown }>, 'intervalMs'>";
const ADDED_DATE = "Pick<Extract<AddedJob, { at: unknown }>, 'at'>";

/** The table that checks the options of each type, and has their defaults. */
const TABLES = new Map<string, { readonly defaults: Readonly<Record<string, unknown>> }>([
  [MODULE, { defaults: moduleDefaults() }],
  ['LockOptions', LOCK_OPTIONS],
  ['Parameters<typeof fixedInterval>[0]', FIXED_INTERVAL_OPTIONS],
  ['Parameters<typeof exponentialBackoff>[0]', BACKOFF_OPTIONS],
  ['SemaphoreOptions', SEMAPHORE_OPTIONS],
  [PERMITS, PERMIT_OPTIONS],
  ['CampaignOptions', CAMPAIGN_OPTIONS],
  ['WaitUntilFreeOptions', WAIT_UNTIL_FREE_OPTIONS],
  ['ListOptions', LIST_OPTIONS],
  ['FleetOptions', FLEET_OPTIONS],
  ['LockExceptionFilterOptions', LOCK_EXCEPTION_FILTER_OPTIONS],
  ['HealthOptions', HEALTH_OPTIONS],
  ['RedisLockConsoleOptions', CONSOLE_OPTIONS],
  [INDICATOR, HEALTH_INDICATOR_OPTIONS],
  ['ForceReleaseOptions', FORCE_RELEASE_OPTIONS],
  ['ExplainOptions', EXPLAIN_OPTIONS],
  ['ContentionOptions', CONTENTION_OPTIONS],
  [LOCK_DECORATORS, LOCK_DECORATOR_OPTIONS],
  [SEMAPHORE, SEMAPHORE_DECORATOR_OPTIONS],
  ['LeaderOnlyOptions', LEADER_ONLY_OPTIONS],
  [ONCE, ONCE_OPTIONS],
  ['SingletonJobOptions', JOB_OPTIONS],
  [TICK, TICK_OPTIONS],
  [TIMEOUT, TIMEOUT_OPTIONS],
  ['SingletonRunOptions', SINGLETON_RUN_OPTIONS],
  [ADDED_CRON, ADDED_CRON_OPTIONS],
  [ADDED_INTERVAL, ADDED_INTERVAL_OPTIONS],
  [ADDED_DATE, ADDED_DATE_OPTIONS],
  ['RunNowOptions', RUN_NOW_OPTIONS],
  ['ResumeOptions', RESUME_OPTIONS],
  ['PauseOptions', PAUSE_OPTIONS],
  ['HistoryOptions', HISTORY_OPTIONS],
  ['OpenTelemetryOptions', OPEN_TELEMETRY_OPTIONS],
  ['TypeormTransactionalOptions', TYPEORM_TRANSACTIONAL_OPTIONS],
  ['TestLocksOptions', TEST_LOCKS_OPTIONS],
  ['HoldElsewhereOptions', HOLD_ELSEWHERE_OPTIONS],
  ["NonNullable<Parameters<TestJobs['run']>[1]>", RUN_JOB_OPTIONS],
  ['HeldDuringOptions', HELD_DURING_OPTIONS],
  ['ExclusiveOptions', EXCLUSIVE_OPTIONS],
  ['ExploreRacesOptions<object>', EXPLORE_OPTIONS],
  ['RacePointOptions', RACE_POINT_OPTIONS],
  ['RacedOptions<object>', RACED_OPTIONS],
]);

/** Sections of the reference with the options that several types share. */
const SHARED: Record<string, readonly string[]> = {
  [MODULE]: ['LockOptions'],
  [ONCE]: ['LockOptions'],
  [PERMITS]: ['LockOptions'],
  [INDICATOR]: ['HealthOptions'],
  [LOCK_DECORATORS]: ['LockOptions'],
  [SEMAPHORE]: ['LockOptions', LOCK_DECORATORS],
  [TICK]: ['SingletonJobOptions'],
  [TIMEOUT]: ['SingletonJobOptions'],
  [ADDED_CRON]: ['SingletonJobOptions', TICK],
  [ADDED_INTERVAL]: ['SingletonJobOptions'],
  [ADDED_DATE]: ['SingletonJobOptions', TICK],
};

/** A default that is a value, not words. */
const LITERAL = /^('.*'|[\d.]+|true|false|Infinity)$/;

describe('the options of the reference', () => {
  it.each([...TABLES.keys()])('%s: the defaults are those of its table', (type) => {
    for (const option of tables.get(type)!) {
      const used = TABLES.get(type)!.defaults[option.name];
      const expected = used === undefined ? expect.not.stringMatching(LITERAL) : written(used);
      expect([option.name, option.default]).toEqual([option.name, expected]);
    }
  });

  it('each have a table, but for those of a client and of Nest', () => {
    const others = ['ClusterConnectionOptions', 'Omit<RedisLockModuleAsyncOptions, keyof RedisLockModuleExtras>'];
    expect([...TABLES.keys(), ...others].sort()).toEqual([...tables.keys()].sort());
  });

  it('leave out no default of a table', () => {
    for (const [type, { defaults }] of TABLES) {
      const documented = [type, ...(SHARED[type] ?? [])].flatMap((each) => tables.get(each)!.map(({ name }) => name));
      expect([type, documented]).toEqual([type, expect.arrayContaining(Object.keys(defaults))]);
    }
  });

  it('are used when an option is left out', () => {
    const resolved = resolveModuleOptions({ connection: 'memory:' });
    const { drainMs, keyPrefix, observers, onLeak, labelGroups, suspiciousNames } = resolved;
    const { runLeaseMs, ...defaults } = resolved.defaults;
    const used = { ...defaults, keyPrefix, observers, onLeak, labelGroups, suspiciousNames };
    expect(defaults).toEqual(LOCK_DEFAULTS);
    expect(used).toEqual(MODULE_OPTIONS.defaults);
    expect(runLeaseMs).toBe(TICK_OPTIONS.defaults.leaseMs);
    expect(drainMs).toBe(0);
    expect(resolveModuleOptions({ connection: 'redis://localhost' }).drainMs).toBe(SHUTDOWN_OPTIONS.defaults.drainMs);
    const drain = { shutdown: { drainMs: 70 } };
    expect(resolveModuleOptions({ connection: 'memory:', ...drain }).drainMs).toBe(70);
    const jobDefaults = without(TICK_OPTIONS.defaults, 'leaseMs', 'waitMs', 'attemptTimeoutMs', 'warnAfterMs');
    const { history, missed, ...job } = resolveJobOptions({}, 'x', TICK_OPTIONS);
    expect({ ...job, ...history, ...missed }).toMatchObject(jobDefaults);
    const { permits, onBusy, onLost } = readSemaphorePlan({ key: 'x', permits: 3 }, 'x');
    expect(permits).toEqual({ count: PERMIT_OPTIONS.defaults.count, total: 3 });
    expect({ onBusy }).toEqual(DECORATOR_OPTIONS.defaults);
    expect(onLost).toBe(PERMIT_OPTIONS.defaults.onLost);
    expect(resolveLeaderOnly('x', 'x')).toMatchObject(without(LEADER_ONLY_OPTIONS.defaults, 'leaseMs'));
  });

  let locks: RedisLockService;
  beforeAll(async () => {
    locks = await createLockService(resolveModuleOptions({ connection: 'memory:' }));
  });
  afterAll(() => locks.beforeApplicationShutdown());

  /** The check of one option, by type. */
  const checks: Record<string, (option: string, value: unknown) => unknown> = {
    [MODULE]: (option, value) =>
      resolveModuleOptions({ connection: 'memory:', ...moduleOption(option, value) } as RedisLockModuleOptions),
    LockOptions: (option, value) => LOCK_OPTIONS.check('x', { [option]: value }),
    'Parameters<typeof fixedInterval>[0]': (option, value) => fixedInterval({ intervalMs: 10, [option]: value }),
    'Parameters<typeof exponentialBackoff>[0]': (option, value) => exponentialBackoff({ [option]: value }),
    SemaphoreOptions: (option, value) => checkSemaphoreOptions({ [option]: value } as never, 'x'),
    [PERMITS]: (option, value) => checkPermitOptions({ [option]: value }, 1_000_000),
    CampaignOptions: (option, value) => CAMPAIGN_OPTIONS.check('x', { [option]: value }),
    WaitUntilFreeOptions: (option, value) => WAIT_UNTIL_FREE_OPTIONS.check('x', { [option]: value }),
    LockExceptionFilterOptions: (option, value) => new LockExceptionFilter({ [option]: value }),
    HealthOptions: (option, value) => locks.health({ [option]: value }),
    FleetOptions: (option, value) => FLEET_OPTIONS.check('fleet', { [option]: value }),
    ListOptions: (option, value) => locks.list({ [option]: value }),
    ExplainOptions: (option, value) => locks.explain('x', { [option]: value }),
    ContentionOptions: (option, value) => locks.contention({ [option]: value }),
    LeaderOnlyOptions: (option, value) => resolveLeaderOnly({ name: 'x', [option]: value }, 'x'),
    [ONCE]: (option, value) => checkOnceOptions('x', { resultTtlMs: 1, [option]: value }),
    [SEMAPHORE]: (option, value) => readSemaphorePlan({ key: 'x', permits: 1_000_000, [option]: value }, 'x'),
    SingletonJobOptions: (option, value) => resolveJobOptions({ [option]: value }, 'x', TICK_OPTIONS),
    [TICK](option, value) {
      const needed =
        option === 'catchUpWindowMs' ? ({ onMissed: 'runOnce' } as const) : option === 'maxReruns' ? RETRY : {};
      resolveJobOptions({ ...needed, [option]: value }, 'x', TICK_OPTIONS);
    },
    [TIMEOUT]: (option, value) => resolveJobOptions({ [option]: value }, 'x', TIMEOUT_OPTIONS),
    [ADDED_INTERVAL]: (option, value) => checkAddedJob({ name: 'x', [option]: value } as never),
    HoldElsewhereOptions: (option, value) => HOLD_ELSEWHERE_OPTIONS.check('holdElsewhere', { [option]: value }),
    "NonNullable<Parameters<TestJobs['run']>[1]>": (option, value) =>
      RUN_JOB_OPTIONS.check('jobs.run', { [option]: value }),
    ExclusiveOptions: (option, value) => EXCLUSIVE_OPTIONS.check('expectExclusive', { [option]: value }),
    'ExploreRacesOptions<object>': (option, value) =>
      resolveExploreOptions<object>({ invariant: () => true, [option]: value }),
    HistoryOptions: (option, value) => HISTORY_OPTIONS.check('history', { [option]: value }),
    SingletonRunOptions: (option, value) =>
      resolveSingletonRun(
        { job: 'x', tick: 'x', overlap: 'skip', ...RETRY, claimTtlMs: 1, lock: {}, ...runOption(option, value) },
        resolveLockDefaults({}),
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

const RETRY = { onCrash: 'retry' } as const;

function runOption(option: string, value: unknown): object {
  const [, name] = option.split('due.');
  return name ? { due: { at: 0, maxClockSkewMs: 1_000, [name]: value } } : { [option]: value };
}

/** Beside others with which its whole range is allowed. */
function moduleOption(option: string, value: unknown): object {
  if (option.startsWith('contention.')) return { contention: { [option.slice('contention.'.length)]: value } };
  if (option === 'shutdown.drainMs') return { shutdown: { drainMs: value } };
  if (option.startsWith('quorum.')) {
    const connections = ['redis://localhost'];
    return { connection: undefined, quorum: { connections, [option.slice('quorum.'.length)]: value } };
  }
  if (option === 'restartQuarantineMs') return { leaseMs: 50, restartQuarantineMs: value };
  if (option === 'persistence') return { restartQuarantineMs: 60_000, persistence: value };
  const [, name] = option.split('durability.');
  if (!name) return { [option]: value };
  return { leaseMs: 60_000, attemptTimeoutMs: 60_000, durability: { replicas: 1, [name]: value } };
}

/** Prefixes options of a group with its name, as the reference does. */
function moduleDefaults(): Record<string, unknown> {
  const groups = {
    'shutdown.': SHUTDOWN_OPTIONS.defaults,
    'quorum.': QUORUM_OPTIONS.defaults,
    'durability.': DURABILITY_OPTIONS.defaults,
    'contention.': CONTENTION_SETTINGS.defaults,
  };
  const grouped = Object.entries(groups).flatMap(([group, defaults]) =>
    Object.entries(defaults).map(([name, value]): [string, unknown] => [group + name, value]),
  );
  return { ...MODULE_OPTIONS.defaults, ...EXTRA_OPTIONS.defaults, ...Object.fromEntries(grouped) };
}

/** A default as its `@default` tag has it. */
function written(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : `[${value.map(written).join(', ')}]`;
  return typeof value === 'string' ? `'${value}'` : String(value);
}

/** `50 ms to 24 h`, `1 s to 366 days`, `0 ms or more`, `1 to 10`. Not lengths of texts. */
function parseRange(allowed: string): [min: number, max: number] | undefined {
  const units: Record<string, number> = { ms: 1, s: 1000, h: 3_600_000, days: 86_400_000 };
  const match = /^(\d+)(?: (ms|s|h))?(?: to (\d+)(?: (ms|s|h|days))?| or more)(?:, or `Infinity`)?$/.exec(allowed);
  if (!match) return undefined;
  const [, min, minUnit = 'ms', max, maxUnit = 'ms'] = match;
  return [Number(min) * units[minUnit]!, max ? Number(max) * units[maxUnit]! : Number.MAX_SAFE_INTEGER];
}
