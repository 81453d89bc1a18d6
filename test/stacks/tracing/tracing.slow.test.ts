import { runUnbundled } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';

/** The output of a program. */
interface Traced {
  readonly stories: {
    readonly seen: readonly string[];
    readonly begunWhileWaiting: readonly string[];
    readonly begunInTheEnd: readonly string[];
    readonly guarded: readonly number[];
    readonly handlers: readonly unknown[];
    readonly spans: readonly Record<'before' | 'under' | 'after', { readonly trace: string; readonly span: string }>[];
  };
  readonly begun: readonly string[];
}

interface OtelTraced extends Traced {
  readonly ended: number;
  /** The spans of a renewed lock, and of a request that has waited for it. */
  readonly spans: readonly {
    readonly name: string;
    readonly id: string;
    readonly trace: string;
    readonly parent?: string;
  }[];
}

interface SentryTraced extends Traced {
  readonly jobs: unknown;
  readonly errors: readonly string[];
  readonly checkIns: readonly { readonly monitor_slug: string; readonly status: string }[];
}

const redis = useRedis();
const programs: Record<string, Traced> = {};

beforeAll(async () => {
  const run = async (name: string): Promise<void> => {
    const { code, stdout, stderr } = await runUnbundled(new URL(`${name}-main.ts`, import.meta.url), [redis().url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    programs[name] = JSON.parse(stdout) as Traced;
  };
  await Promise.all([run('otel'), run('sentry')]);
});

describe.each([
  ['nestjs-otel and the instrumentation of Nest', 'otel', 'Work.'],
  ['@sentry/nestjs', 'sentry', ''],
])('%s', (_, name, prefix) => {
  it('is at work: it makes a span of the handlers of Nest', () => {
    expect(programs[name]!.begun).toEqual(expect.arrayContaining(['Create Nest App', 'handlerAbove', 'Shop.span']));
  });

  it('a span above @DistributedLock has the wait in it, and one below has not', () => {
    const { seen, begunWhileWaiting, begunInTheEnd } = programs[name]!.stories;
    expect(begunWhileWaiting).toEqual([`${prefix}outerSpan`]);
    expect(begunInTheEnd).toEqual([`${prefix}outerSpan`, `${prefix}innerSpan`]);
    expect(seen).toEqual(['in a span, work', 'in a span, work']);
  });

  it('guards still guard, in every order of the decorators', () => {
    expect(programs[name]!.stories.guarded).toEqual([403, 403, 403]);
  });

  it('@LockHandler still locks, and the span lasts until the handler has ended, in both orders', () => {
    expect(programs[name]!.stories.handlers).toEqual([
      { seen: 'in a span, /handler-above' },
      { seen: 'in a span, /handler-below' },
    ]);
  });

  it('20 requests that wait for two locks each keep their own span, and have the lock in their own trace', () => {
    const { spans } = programs[name]!.stories;
    expect(new Set(spans.map(({ before }) => before.trace)).size).toBe(20);
    expect(spans.filter(({ before, after }) => before.span !== after.span)).toEqual([]);
    expect(spans.filter(({ before, under }) => before.trace !== under.trace || before.span === under.span)).toEqual([]);
  });

  it('the wait for a lock and its hold are spans of the same tracer', () => {
    expect(programs[name]!.begun).toEqual(
      expect.arrayContaining(['acquire Work.outerSpan', 'hold Work.outerSpan', 'hold Shop.handlerAbove']),
    );
  });
});

it('OpenTelemetry: every span ends', () => {
  const { begun, ended } = programs['otel'] as OtelTraced;
  expect(ended).toBe(begun.length);
});

describe('OpenTelemetry: a lock that is held over many renewals, and a request that waits for it', () => {
  const spans = () => (programs['otel'] as OtelTraced).spans;
  const traceOf = (name: string) => {
    const { trace } = spans().find((span) => span.name === name)!;
    return spans().filter((span) => span.trace === trace);
  };
  const parentOf = (child: { readonly parent?: string }) => spans().find(({ id }) => id === child.parent)?.name;

  it('commands that were sent in the background are in the trace of no request', () => {
    const inTraces = [...traceOf('holder'), ...traceOf('waiter')];
    const inBackground = spans().filter((span) => !inTraces.includes(span) && span.name.startsWith('eval'));
    expect(inBackground.length).toBeGreaterThanOrEqual(2); // renewals
    expect(inBackground.filter(({ parent }) => parent !== undefined)).toEqual([]);
  });

  it('each request has the commands of its own acquire and release, and no others', () => {
    for (const request of ['holder', 'waiter']) {
      const names = traceOf(request).map((span) => (span.name.startsWith('eval') ? 'script' : span.name));
      expect(names.sort()).toEqual(['acquire held', 'hold held', request, 'script', 'script'].sort());
    }
  });

  it('the command that asks for the lock is below the acquisition', () => {
    for (const request of ['holder', 'waiter']) {
      const [asked, released] = traceOf(request).filter(({ name }) => name.startsWith('eval'));
      expect([parentOf(asked!), parentOf(released!)]).toEqual(['acquire held', request]);
    }
  });
});

describe('Sentry', () => {
  const sentry = () => programs['sentry'] as SentryTraced;

  it('schedules singleton jobs', () => {
    expect(sentry().jobs).toMatchObject({ scheduled: 2 });
  });

  it('@SentryCron below @SingletonCron checks in where the tick runs, and above it on both instances', () => {
    const statuses = (monitor: string) =>
      sentry()
        .checkIns.filter(({ monitor_slug }) => monitor_slug === monitor)
        .map(({ status }) => status);
    expect(statuses('prices')).toEqual(['in_progress', 'ok']);
    expect(statuses('above')).toEqual(['in_progress', 'ok', 'in_progress', 'ok']);
  });

  it('a busy resource is 423 and no incident with LockExceptionFilter below SentryGlobalFilter', () => {
    expect(sentry().jobs).toMatchObject({ busy: 423, broken: 500 });
    expect(sentry().errors).toEqual(['broken']);
  });
});
