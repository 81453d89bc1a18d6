import { setTimeout as sleep } from 'node:timers/promises';
import { type ArgumentsHost, Controller, Get, Inject, Param, Query, Res } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/internal';
import type { Observable } from 'rxjs';
import {
  DistributedLock,
  InvalidLockOptionsError,
  InvalidResourceError,
  LeaseLostError,
  LockAbortedError,
  LockBusyError,
  LockError,
  LockExceptionFilter,
  LockHandler,
  LockModeMismatchError,
  LockQueueFullError,
  LockReentryError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
  RedisLockService,
} from 'nestjs-redis-lock';
import { StaleFencingTokenError } from 'nestjs-redis-lock/fence';
import { JobNotFoundError } from 'nestjs-redis-lock/schedule';
import type { Holders } from '../../../lib/kernel/api/holder.js';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';
import { PLATFORMS } from '../platforms.js';

/** Details of the holder are for the operator only. */
const seen: Holders = {
  holders: [
    {
      instanceId: 'api-3:4711',
      isThisProcess: false,
      mode: 'exclusive',
      fencingToken: 98_765,
      ttlMs: 27_000,
      leaseMs: 30_000,
      heldMs: 42_000,
      depth: 1,
    },
  ],
  holderCount: 1,
};
const INSIDES = /order:7|redis|6379|ttl|token|enough|api-3|4711|98765|holder|exclusive/i;

const connectionError = new Error('not connected to Redis at redis.internal:6379');
const errors: Record<string, LockError> = {
  busy: new LockBusyError('order:7', { attempts: 3, retryAfterMs: 1_200, seen }),
  'busy for long': new LockBusyError('order:7', { attempts: 3, retryAfterMs: 86_400_000 }),
  'busy for an instant': new LockBusyError('order:7', { attempts: 3, retryAfterMs: 0 }),
  timeout: new LockTimeoutError('order:7', { waitedMs: 500, attempts: 2, retryAfterMs: 2_900, seen }),
  full: new LockQueueFullError('order:7', { maxWaiters: 3, where: 'redis', attempts: 1, retryAfterMs: 2_900, seen }),
  unavailable: new LockUnavailableError('order:7', 'acquire', 'failed', connectionError),
  shutdown: new LockShutdownError('order:7'),
  superseded: LockAbortedError.superseded('order:7', 'api-1', false),
  lost: new LeaseLostError('order:7', 'notRenewed', 12),
  stale: new StaleFencingTokenError('order:7', 64, 96),
  aborted: new LockAbortedError('order:7', new Error('enough')),
  reentry: LockReentryError.waitingForItself('order:7', 'exclusive', 'exclusive'),
  mismatch: new LockModeMismatchError('order:7 has 3 permits, and this call states 4', 'order:7'),
  options: new InvalidLockOptionsError('The key function of Orders.ship threw: order:7', 'key'),
};

/** The common part of both platforms' responses. */
interface AnyResponse {
  raw?: { write(text: string): unknown };
  write?(text: string): unknown;
  hijack?(): unknown;
}

@Controller()
class FailingController {
  @Get('begun/:kind')
  async begun(@Param('kind') kind: string, @Res() response: AnyResponse): Promise<void> {
    (response.raw ?? (response as Required<AnyResponse>)).write('begun');
    throw errors[kind]!;
  }

  /** As a function of Node does when a signal of ours aborts. */
  @Get('signal/:kind')
  async signal(@Param('kind') kind: string): Promise<void> {
    await sleep(1_000, undefined, { signal: AbortSignal.abort(errors[kind]) });
  }

  @Get('other')
  async other(): Promise<void> {
    throw new RangeError('not of a lock');
  }

  @Get(':kind')
  async fail(@Param('kind') kind: string): Promise<void> {
    throw errors[kind]!;
  }
}

describe.each(PLATFORMS)('LockExceptionFilter on %s', (_, adapter) => {
  const start = useApps();
  const startFailing = () =>
    start({
      controllers: [FailingController],
      adapter: adapter(),
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter()),
    });

  const answers: [string, number, string | null, string][] = [
    ['busy', 423, '2', 'LOCK_BUSY'],
    ['busy for long', 423, '5', 'LOCK_BUSY'],
    ['busy for an instant', 423, '1', 'LOCK_BUSY'],
    ['timeout', 423, '3', 'LOCK_TIMEOUT'],
    ['full', 503, '1', 'LOCK_QUEUE_FULL'],
    ['unavailable', 503, '1', 'LOCK_UNAVAILABLE'],
    ['shutdown', 503, '1', 'LOCK_SHUTDOWN'],
    ['lost', 503, '1', 'LEASE_LOST'],
    ['stale', 503, '1', 'STALE_FENCING_TOKEN'],
    ['superseded', 409, null, 'LOCK_ABORTED'],
    ['aborted', 500, null, 'LOCK_ABORTED'],
    ['reentry', 500, null, 'LOCK_REENTRY'],
    ['mismatch', 500, null, 'LOCK_MODE_MISMATCH'],
    ['options', 500, null, 'INVALID_LOCK_OPTIONS'],
  ];
  it.each(answers)('%s: %i, Retry-After %s, code %s, and nothing of our insides', async (kind, status, retry, code) => {
    const { url } = await startFailing();
    const response = await fetch(`${url}/${kind}`);
    expect(response.status).toBe(status);
    expect(response.headers.get('Retry-After')).toBe(retry);
    expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    const body = (await response.json()) as object;
    expect(body).toMatchObject({ statusCode: status, code });
    expect(Object.keys(body).sort()).toEqual(['code', 'error', 'message', 'statusCode']);
    expect(JSON.stringify({ ...body, code: '' })).not.toMatch(INSIDES);
    expect([...response.headers.values()].join()).not.toMatch(INSIDES);
  });

  it.each([
    ['superseded', 409],
    ['lost', 503],
    ['aborted', 500],
  ])('answers an AbortError by its cause, %s: %i', async (kind, status) => {
    const { url, log } = await startFailing();
    const response = await fetch(`${url}/signal/${kind}`);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ code: errors[kind]!.code });
    expect(log.at('error')).toEqual(status === 500 ? [errors[kind]!.message] : []);
  });

  it.each([['busy for long', '30']])('with maxRetryAfterMs, %s: Retry-After %s', async (kind, retry) => {
    const { url } = await start({
      controllers: [FailingController],
      adapter: adapter(),
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter({ maxRetryAfterMs: 30_000 })),
    });
    expect((await fetch(`${url}/${kind}`)).headers.get('Retry-After')).toBe(retry);
  });

  it('ends a response that has begun, whose status cannot change any more', async () => {
    const { url, log } = await startFailing();
    const response = await fetch(`${url}/begun/busy`);
    expect([response.status, await response.text()]).toEqual([200, 'begun']);
    expect(log.at('error')).toEqual([]);
  });

  it('does not repeat an outage that the lock service has logged', async () => {
    @Controller()
    class Orders {
      constructor(@Inject(RedisLockService) private readonly locks: RedisLockService) {}

      @Get('pay')
      async pay(): Promise<void> {
        await this.locks.acquire('order:7', { waitMs: 0 });
      }
    }
    const { url, log } = await start({
      imports: [inMemory({ connection: { host: '127.0.0.1', port: 1 } })],
      controllers: [Orders],
      adapter: adapter(),
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter()),
    });
    for (let n = 0; n < 3; n++) expect((await fetch(`${url}/pay`)).status).toBe(503);
    const lines = log.lines.filter(({ level, message }) => level === 'warn' && message.includes('could not acquire'));
    expect(lines.map(({ context }) => context)).toEqual(['RedisLock']);
  });

  it('logs what only the operator may know: programming errors, and that Redis is unreachable', async () => {
    const { url, log } = await startFailing();
    for (const kind of ['busy', 'timeout', 'shutdown', 'lost']) await fetch(`${url}/${kind}`);
    expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
    await fetch(`${url}/unavailable`);
    await fetch(`${url}/unavailable`); // counted, and told when the minute is over
    expect(log.at('warn')).toEqual([`${errors['unavailable']!.message}.`]);
    await fetch(`${url}/options`);
    await fetch(`${url}/mismatch`);
    expect(log.at('error')).toEqual([errors['options']!.message, errors['mismatch']!.message]);
  });

  it('leaves other errors alone', async () => {
    const { url, log } = await startFailing();
    expect((await fetch(`${url}/other`)).status).toBe(500);
    expect(log.at('error')).toEqual(['RangeError: not of a lock']);
  });
});

describe.each(PLATFORMS)('a name that a client made unusable, on %s', (_, adapter) => {
  @Controller()
  class OrdersController {
    constructor(@Inject(RedisLockService) private readonly locks: RedisLockService) {}

    @Get('handler')
    @LockHandler((context) => String(context.switchToHttp().getRequest<{ query: { id: string } }>().query.id))
    handler(): string {
      return 'ran';
    }

    @Get('method')
    @DistributedLock((id: string) => `order:${id}`)
    async method(@Query('id') _id: string): Promise<string> {
      return 'ran';
    }

    @Get('acquired')
    acquired(@Query('id') id: string): Promise<string> {
      return this.locks.using(`order:${id}`, () => 'ran');
    }

    @Get('mistake')
    @DistributedLock(() => undefined as unknown as string)
    async mistake(@Query('id') _id: string): Promise<string> {
      return 'ran';
    }
  }
  const start = useApps();
  const startOrders = () =>
    start({
      imports: [inMemory()],
      controllers: [OrdersController],
      adapter: adapter(),
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter()),
    });

  it.each(['handler', 'method', 'acquired'])('is 400 for its sender, and no stack in the log: %s', async (how) => {
    const { url, log } = await startOrders();
    const response = await fetch(`${url}/${how}?id=${'x'.repeat(600)}`);
    const body = (await response.json()) as object;
    expect([response.status, body]).toEqual([
      400,
      {
        statusCode: 400,
        error: 'Bad Request',
        message:
          'A value in this request cannot name a lock: it is empty, too long, reserved, or not well-formed text.',
        code: 'INVALID_LOCK_OPTIONS',
      },
    ]);
    expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
  });

  it('is 500 for a bug in the program, with a log line for its author', async () => {
    const { url, log } = await startOrders();
    expect((await fetch(`${url}/mistake?id=7`)).status).toBe(500);
    expect(log.at('error')).toEqual([expect.stringContaining('undefined is not a string')]);
  });
});

describe.each(PLATFORMS)('a job that an operator names wrongly, on %s', (_, adapter) => {
  @Controller()
  class JobsController {
    @Get()
    run(@Query('elsewhere') elsewhere?: string): void {
      if (elsewhere) throw JobNotFoundError.elsewhere('nightly', ['shop-1:4711:x7k2p9']);
      throw JobNotFoundError.unknown('nigthly', 'This instance', ['nightly', 'hourly']);
    }
  }
  const start = useApps();

  it('is 404 with the names that exist, and no error in the log', async () => {
    const { url, log } = await start({
      controllers: [JobsController],
      adapter: adapter(),
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter()),
    });
    const response = await fetch(url);
    expect([response.status, (await response.json()) as object]).toEqual([
      404,
      {
        statusCode: 404,
        error: 'Not Found',
        message: 'This instance has no job called "nigthly". Did you mean "nightly"?',
        code: 'JOB_NOT_FOUND',
      },
    ]);
    expect(await (await fetch(`${url}?elsewhere=1`)).text()).not.toContain('shop-1');
    expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
  });
});

describe('without the filter', () => {
  const start = useApps();

  it.each(['busy', 'timeout', 'full'])('Nest answers a request with no word of the holders: %s', async (kind) => {
    const { url, log } = await start({ controllers: [FailingController] });
    const response = await fetch(`${url}/${kind}`);
    expect([response.status, await response.json()]).toEqual([
      500,
      { statusCode: 500, message: 'Internal server error' },
    ]);
    // The operator sees them.
    expect(log.at('error').join()).toContain('api-3:4711');
  });
});

describe('LockExceptionFilter elsewhere than HTTP', () => {
  const filter = new LockExceptionFilter();

  it.each([999, 86_400_001, Number.NaN, '5 s'])('takes no maxRetryAfterMs of %p', (maxRetryAfterMs) => {
    const create = () => new LockExceptionFilter({ maxRetryAfterMs: maxRetryAfterMs as number });
    expect(create).toThrow(InvalidLockOptionsError);
    expect(create).toThrow(/^maxRetryAfterMs must be .* from 1000 to 86400000/);
  });

  /** The arguments of a message: the client, the data, what the platform adds, and the pattern. */
  const hostOf = (type: string, ...args: unknown[]): ArgumentsHost => {
    const host = new ExecutionContextHost(args);
    host.setType(type);
    return host;
  };
  const told = {
    status: 'error',
    code: 'LOCK_BUSY',
    message: 'Another request is working on this. Try again later.',
    retryAfterMs: 1_200,
  };

  it('passes the error through for an unknown kind of context', () => {
    expect(() => filter.catch(errors['busy']!, hostOf('telegraf'))).toThrow(errors['busy']);
  });

  const toGraphql = (kind: string): Error => {
    try {
      filter.catch(errors[kind]!, hostOf('graphql'));
    } catch (error) {
      return error as Error;
    }
    throw new Error('The filter was to throw');
  };

  const extensions: [string, object][] = [
    ['busy for long', { code: 'LOCK_BUSY', status: 423, retryAfterMs: 5_000 }],
    ['unavailable', { code: 'LOCK_UNAVAILABLE', status: 503, retryAfterMs: 1_000 }],
    ['reentry', { code: 'LOCK_REENTRY', status: 500 }],
  ];
  it.each(extensions)('GraphQL: an error whose extensions tell the client what to do: %s', (kind, expected) => {
    const error = toGraphql(kind);
    expect((error as Error & { extensions: object }).extensions).toEqual(expected);
    expect(error).not.toBeInstanceOf(LockError);
    // Servers send the stack, if they are asked to, and whatever is enumerable.
    const { message, stack, name } = error;
    const others = Object.entries(error).filter(([property]) => property !== 'extensions');
    expect(JSON.stringify([message, stack, name, others])).not.toMatch(INSIDES);
    expect(stack).not.toContain('at ');
    // Error reporters find the original.
    expect(error.cause).toBe(errors[kind]);
  });

  const STATUS: Record<string, number> = {
    busy: 10,
    full: 14,
    lost: 10,
    mismatch: 13,
    name: 3, // INVALID_ARGUMENT
  };
  it.each(Object.entries(STATUS))('answers a gRPC call that failed (%s) with the status %i', async (kind, status) => {
    class Metadata {
      readonly entries: Record<string, string> = {};
      set(key: string, value: string): void {
        this.entries[key] = value;
      }
    }
    const call = { sendMetadata: () => {}, metadata: new Metadata() };
    call.metadata.set('authorization', 'secret');
    const error = errors[kind] ?? new InvalidResourceError('order:7 is no name', 'resource');
    const answer = filter.catch(error, hostOf('rpc', {}, call.metadata, call)) as Observable<never>;
    const rejected = rejection<{ details: string; message: string; code: number; metadata: Metadata }>(
      new Promise((resolve, reject) => answer.subscribe({ next: resolve, error: reject })),
    );
    const { code, details, message, metadata } = await rejected;
    expect([code, details]).toEqual([status, message]);
    expect(details).not.toMatch(INSIDES);
    const { 'grpc-retry-pushback-ms': retry, ...rest } = metadata.entries;
    expect(rest).toEqual({ 'lock-error-code': error.code });
    // Without it, the client's own policy decides. The text is a whole number, which gRPC asks for.
    if (status === 13 || status === 3) expect(retry).toBeUndefined();
    else expect(retry).toMatch(/^[1-9]\d*$/);
  });

  const event = ['exception', { ...told, cause: { pattern: 'pay', data: '7' } }];

  it('emits to a Socket.IO client, and sends to a ws client, as Nest does', () => {
    const sent: unknown[] = [];
    const emit = (...args: unknown[]): unknown => sent.push(args);
    const send = (text: string): unknown => sent.push(JSON.parse(text));
    filter.catch(errors['busy']!, hostOf('ws', { emit, send: emit }, '7', undefined, 'pay'));
    filter.catch(errors['busy']!, hostOf('ws', { emit, send, readyState: 1 }, '7', 'pay', 'pay'));
    expect(sent).toEqual([event, { event: event[0], data: event[1] }]);
  });

  it('acknowledges a message of Socket.IO whose client asked for that', () => {
    const sent: unknown[] = [];
    const emit = (...args: unknown[]): unknown => sent.push(args);
    const acknowledge = (answer: unknown): unknown => sent.push(['acknowledged', answer]);
    filter.catch(errors['busy']!, hostOf('ws', { emit, send: emit }, '7', acknowledge, 'pay'));
    expect(sent).toEqual([event, ['acknowledged', told]]);
  });
});
