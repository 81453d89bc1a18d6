import ts from 'typescript';
import { checkCampaignOptions } from '../../lib/core/leader/campaign-options.js';
import { checkLatch, checkLatchWait } from '../../lib/core/latch/countdown-latch.js';
import { InvalidLockOptionsError } from '../../lib/core/api/errors.js';
import { checkLockOptions, LOCK_DEFAULTS } from '../../lib/core/api/lock-options.js';
import { exponentialBackoff, fixedInterval } from '../../lib/core/api/retry.js';
import { resolveLeaderOnly } from '../../lib/nest/leader/leader-only-options.js';
import { readSemaphoreDecoration } from '../../lib/nest/decorators/semaphore-decorator-options.js';
import { resolveModuleOptions } from '../../lib/nest/module/module-options.js';
import { resolveJobOptions, TICK_OPTION_NAMES } from '../../lib/nest/schedule/singleton-options.js';
import { SingletonTimeout } from '../../lib/nest/schedule/singleton-timeout.decorator.js';
import type { RedisLockModuleOptions } from '../../lib/index.js';
import { GUIDES, type Table, tablesOf } from './guides.js';
import { createSnippetProgram } from './snippet-program.js';

/** The types whose properties the tables list, by the `<!-- options: ... -->` before a table. */
const TYPES = `
import type * as lock from 'nestjs-redis-lock';
import type * as jobs from 'nestjs-redis-lock/schedule';
export interface Types {
  'RedisLockModuleOptions & RedisLockModuleExtras': Omit<lock.RedisLockModuleOptions, 'shutdown' | 'durability'> & lock.RedisLockModuleExtras;
  durability: NonNullable<lock.RedisLockModuleOptions['durability']>;
  shutdown: NonNullable<lock.RedisLockModuleOptions['shutdown']>;
  LockOptions: lock.LockOptions;
  fixedInterval: Parameters<typeof lock.fixedInterval>[0];
  exponentialBackoff: NonNullable<Parameters<typeof lock.exponentialBackoff>[0]>;
  DistributedLockOptions: Omit<lock.DistributedLockOptions, keyof lock.LockOptions>;
  LeaderOnlyOptions: lock.LeaderOnlyOptions;
  CampaignOptions: lock.CampaignOptions;
  LatchOptions: lock.LatchOptions;
  CountDownOptions: lock.CountDownOptions;
  LatchWaitOptions: lock.LatchWaitOptions;
  DistributedSemaphoreOptions: Omit<
    lock.DistributedSemaphoreOptions & lock.SemaphoreOptions & lock.PermitOptions,
    keyof lock.LockOptions | keyof lock.DecorationOptions
  >;
  SingletonJobOptions: jobs.SingletonJobOptions;
  SingletonTickOptions: Omit<jobs.SingletonTickOptions, keyof jobs.SingletonJobOptions>;
  SingletonTimeoutOptions: Omit<jobs.SingletonTimeoutOptions, keyof jobs.SingletonJobOptions>;
}
`;

interface DocumentedOption {
  readonly name: string;
  readonly default: string;
}

/** What types and JSDoc say: the options of each type, with their `@default`. */
function declaredOptions(): Map<string, DocumentedOption[]> {
  const program = createSnippetProgram({ 'types.ts': TYPES });
  const checker = program.getTypeChecker();
  const source = program.getSourceFiles().find(({ fileName }) => fileName.endsWith('/types.ts'))!;
  const [types] = source.statements.filter(ts.isInterfaceDeclaration);
  const result = new Map<string, DocumentedOption[]>();
  for (const group of checker.getTypeAtLocation(types!).getProperties()) {
    const properties = checker.getTypeOfSymbol(group).getProperties();
    result.set(
      group.name,
      properties.map((property) => ({ name: property.name, default: defaultOf(property, checker) })),
    );
  }
  const moduleOptions = result.get('RedisLockModuleOptions & RedisLockModuleExtras')!;
  for (const group of ['shutdown', 'durability']) {
    for (const option of result.get(group)!) moduleOptions.push({ ...option, name: `${group}.${option.name}` });
    result.delete(group);
  }
  return result;
}

function defaultOf(property: ts.Symbol, checker: ts.TypeChecker): string {
  const tag = property.getJsDocTags(checker).find(({ name }) => name === 'default');
  if (tag) return ts.displayPartsToString(tag.text);
  return property.flags & ts.SymbolFlags.Optional ? 'none' : 'required';
}

const tables = new Map<string, Table>(
  GUIDES.filter((path) => path.startsWith('docs/reference/'))
    .flatMap(tablesOf)
    .flatMap((table) => (table.note ? [[table.note.replace('options: ', ''), table] as const] : [])),
);
const plain = (cell: string): string => cell.replace(/`/g, '');

describe('the options tables of the guides', () => {
  const declared = declaredOptions();

  it.each([...declared])('name every option of %s, with the default of its JSDoc', (type, options) => {
    const rows = tables.get(type)!.rows.map(([name, , value]) => ({ name: plain(name!), default: plain(value!) }));
    expect(rows.toSorted(byName)).toEqual(options.toSorted(byName));
  });

  it('name no other types', () => {
    expect([...tables.keys()].toSorted()).toEqual([...declared.keys()].toSorted());
  });

  it('have the defaults that the library uses', () => {
    const { defaults, drainMs, keyPrefix, observers } = resolveModuleOptions({ connection: 'memory:' });
    const job = resolveJobOptions({}, 'x', TICK_OPTION_NAMES);
    const used: Record<string, unknown> = { ...defaults, 'shutdown.drainMs': drainMs, keyPrefix: `'${keyPrefix}'` };
    expect(defaults).toEqual(LOCK_DEFAULTS);
    expect(observers).toEqual([]);
    for (const [option, value] of Object.entries(used)) {
      expect([option, defaultIn('RedisLockModuleOptions & RedisLockModuleExtras', option)]).toEqual([
        option,
        String(value),
      ]);
    }
    const { permits } = readSemaphoreDecoration({ key: 'x', permits: 3 }, 'x');
    expect(defaultIn('DistributedSemaphoreOptions', 'count')).toBe(String(permits!.count));
    expect(defaultIn('SingletonJobOptions', 'overlap')).toBe(`'${job.overlap}'`);
    expect(defaultIn('SingletonTickOptions', 'onCrash')).toBe(`'${job.onCrash}'`);
    expect(defaultIn('SingletonTickOptions', 'maxClockSkewMs')).toBe(String(job.maxClockSkewMs));
  });

  /** How each type checks one option. */
  const checks: Record<string, (option: string, value: unknown) => unknown> = {
    'RedisLockModuleOptions & RedisLockModuleExtras': (option, value) =>
      resolveModuleOptions({
        connection: 'memory:',
        ...moduleOption(option, value),
      } as RedisLockModuleOptions),
    LockOptions: (option, value) => checkLockOptions({ [option]: value }),
    fixedInterval: (option, value) => fixedInterval({ intervalMs: 10, [option]: value }),
    exponentialBackoff: (option, value) => exponentialBackoff({ [option]: value }),
    LeaderOnlyOptions: (option, value) => resolveLeaderOnly({ name: 'x', [option]: value }, 'x'),
    CampaignOptions: (option, value) => checkCampaignOptions({ [option]: value }),
    LatchOptions: (option, value) => checkLatch('x', 1, { [option]: value }),
    LatchWaitOptions: (option, value) => checkLatchWait({ [option]: value }),
    DistributedSemaphoreOptions: (option, value) =>
      readSemaphoreDecoration({ key: 'x', permits: 1_000_000, [option]: value }, 'x'),
    SingletonJobOptions: (option, value) => resolveJobOptions({ [option]: value }, 'x', TICK_OPTION_NAMES),
    SingletonTickOptions: (option, value) => resolveJobOptions({ [option]: value }, 'x', TICK_OPTION_NAMES),
    SingletonTimeoutOptions: (option, value) => SingletonTimeout(1, { [option]: value }),
  };

  const ranges = [...tables].flatMap(([type, { rows }]) =>
    rows.flatMap(([name, allowed]) => {
      const range = parseRange(allowed!);
      return range ? [[type, plain(name!), range] as const] : [];
    }),
  );

  it.each(ranges)('%s: %s takes its range and nothing outside of it', (type, option, [min, max]) => {
    const check = (value: number) => () => checks[type]!(option, value);
    expect(check(min)).not.toThrow();
    expect(check(min - 1)).toThrow(InvalidLockOptionsError);
    expect(check(max)).not.toThrow();
    if (max < Number.MAX_SAFE_INTEGER) expect(check(max + 1)).toThrow(InvalidLockOptionsError);
  });

  it('gives ranges for every duration', () => {
    const durations = [...tables].flatMap(([type, { rows }]) =>
      rows
        .map(([name]) => plain(name!))
        .filter((name) => name.endsWith('Ms'))
        .map((name) => [type, name]),
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

function byName(a: DocumentedOption, b: DocumentedOption): number {
  return a.name < b.name ? -1 : 1;
}

function defaultIn(type: string, option: string): string {
  return plain(tables.get(type)!.rows.find(([name]) => plain(name!) === option)![2]!);
}

/** `50 ms to 24 h`, `0 ms and more`, `1 to 10`. Not lengths of texts. */
function parseRange(allowed: string): [min: number, max: number] | undefined {
  const units: Record<string, number> = { ms: 1, s: 1000, h: 3_600_000 };
  const match = /^(\d+)(?: (ms|s|h))?(?: to (\d+)(?: (ms|s|h))?| and more)(?:, or `Infinity`)?$/.exec(allowed);
  if (!match) return undefined;
  const [, min, minUnit = 'ms', max, maxUnit = 'ms'] = match;
  return [Number(min) * units[minUnit]!, max ? Number(max) * units[maxUnit]! : Number.MAX_SAFE_INTEGER];
}
