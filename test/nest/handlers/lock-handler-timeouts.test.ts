import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Req,
  UseInterceptors,
} from '@nestjs/common';
import {
  catchError,
  defer,
  map,
  type Observable,
  raceWith,
  repeat,
  retry,
  switchMap,
  takeUntil,
  throwError,
} from 'rxjs';
import { DistributedLock, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { PLATFORMS } from '../nest-apps.js';
import { timeoutInterceptor } from '../timeout-interceptor.js';
import { useHandlerShop } from './handler-shop.js';
import { gate } from '../../support/expect/tracked.js';

let timeIsUp = gate();
let mayEnd = gate();
let mayPass = gate();
let events: string[] = [];

const TimeoutInterceptor = timeoutInterceptor(() => timeIsUp.opened);

@Injectable()
class RetryInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry(2));
  }
}

/** Retries after an error, an unwanted value, or an end without a value. */
class BeginsAnew implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { how } = context.switchToHttp().getRequest<{ params: { how: string } }>().params;
    if (how === 'retry') return next.handle().pipe(retry(1));
    if (how === 'catchError') return next.handle().pipe(catchError(() => next.handle()));
    if (how === 'repeat') return next.handle().pipe(repeat(2));
    const wanted = (value: unknown): unknown => {
      if (value === 'first') throw new Error('not wanted');
      return value;
    };
    return next.handle().pipe(map(wanted), retry(1));
  }
}

/** Ends the first attempt before the handler has ended. */
class EndsTheFirst implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<{ params: { how: string }; attempts?: number }>();
    request.attempts = (request.attempts ?? 0) + 1;
    const { how } = request.params;
    if (request.attempts > 1 || how === 'value') return next.handle();
    const timeout = defer(() => timeIsUp.opened);
    if (how === 'repeat') return next.handle().pipe(takeUntil(timeout));
    return next.handle().pipe(raceWith(timeout.pipe(switchMap(() => throwError(() => new Error('timeout'))))));
  }
}

@Injectable()
class SlowPipe implements PipeTransform {
  async transform(id: string): Promise<string> {
    events.push('pipe began');
    await mayPass.opened;
    events.push('pipe ended');
    return id;
  }
}

@Controller('orders')
class OrdersController {
  @Inject() readonly locks!: RedisLockService;
  #attempts = 0;

  @Get('outside/:who')
  @LockHandler({ key: 'orders', waitMs: Infinity })
  @UseInterceptors(TimeoutInterceptor)
  async outside(@Param('who') who: string): Promise<string> {
    return this.#work(who);
  }

  @Get('inside/:who')
  @UseInterceptors(TimeoutInterceptor)
  @LockHandler({ key: 'orders', waitMs: Infinity })
  async inside(@Param('who') who: string): Promise<string> {
    return this.#work(who);
  }

  @Get('piped/:who')
  @LockHandler({ key: 'orders', waitMs: Infinity })
  @UseInterceptors(TimeoutInterceptor)
  async piped(@Param('who', SlowPipe) who: string): Promise<string> {
    return this.#work(who);
  }

  @Get('retried')
  @UseInterceptors(RetryInterceptor)
  @LockHandler('orders')
  @DistributedLock('orders')
  async retried(): Promise<string> {
    return this.#thirdTime();
  }

  async #thirdTime(): Promise<string> {
    if (++this.#attempts < 3) throw new Error('not yet');
    return `${this.#attempts} attempts under ${this.locks.current()?.resource}`;
  }

  @UseInterceptors(EndsTheFirst)
  @LockHandler('orders')
  @UseInterceptors(BeginsAnew)
  @Get('anew/:how')
  async anew(@Req() { attempts }: { attempts: number }): Promise<string> {
    return this.#work(attempts === 1 ? 'first' : 'second');
  }

  @UseInterceptors(EndsTheFirst)
  @LockHandler('orders')
  @LockHandler('stock')
  @UseInterceptors(BeginsAnew)
  @Get('both-anew/:how')
  async bothAnew(@Req() { attempts }: { attempts: number }): Promise<string> {
    return this.#work(attempts === 1 ? 'first' : 'second');
  }

  async #work(who: string): Promise<string> {
    const signal = this.locks.current()?.signal;
    events.push(`${who} began`);
    await mayEnd.opened;
    events.push(`${who} ended${signal?.aborted === false ? '' : ' without the lock'}`);
    return who;
  }
}

describe.each(PLATFORMS)('@LockHandler and interceptors that give up before the handler does, on %s', (_, adapter) => {
  beforeEach(() => {
    [timeIsUp, mayEnd, mayPass, events] = [gate(), gate(), gate(), []];
  });
  const shop = useHandlerShop('orders', adapter, { controllers: [OrdersController] });
  afterEach(() => [timeIsUp, mayEnd, mayPass].forEach(({ open }) => open()));

  const status = async (path: string): Promise<number> => (await fetch(`${shop().url}/orders/${path}`)).status;
  const holders = (): Promise<number> => shop().holders();
  const waiters = (): Promise<number> => shop().waiters();

  it.each(['outside', 'inside'])(
    'a timeout %s of the lock is answered at once, and the lock is held until the handler has ended',
    async (where) => {
      const first = status(`${where}/first`);
      await eventually(() => expect(events).toEqual(['first began']));
      timeIsUp.open();
      expect(await first).toBe(408);
      expect(await holders()).toBe(1);

      timeIsUp = gate();
      const second = status(`${where}/second`);
      await eventually(async () => expect(await waiters()).toBe(1));
      expect(events).toEqual(['first began']);

      mayEnd.open();
      expect(await second).toBe(200);
      expect(events).toEqual(['first began', 'first ended', 'second began', 'second ended']);
      await eventually(async () => expect(await holders()).toBe(0));
      expect(shop().log.at('error')).toEqual([]);
    },
  );

  it('a handler that had not begun when the request was given up does not begin: the lock is free', async () => {
    const first = status('piped/first');
    await eventually(() => expect(events).toEqual(['pipe began']));
    timeIsUp.open();
    expect(await first).toBe(408);
    await eventually(async () => expect(await holders()).toBe(0));

    timeIsUp = gate();
    const second = status('outside/second');
    await eventually(() => expect(events).toEqual(['pipe began', 'second began']));
    mayPass.open();
    await eventually(() => expect(events).toContain('pipe ended'));
    mayEnd.open();
    expect(await second).toBe(200);
    expect(events).toEqual(['pipe began', 'second began', 'pipe ended', 'second ended']);
    expect(shop().log.at('error')).toEqual([]);
  });

  it.each(
    ['anew', 'both-anew'].flatMap((path) => ['retry', 'catchError', 'repeat', 'value'].map((how) => [path, how])),
  )(
    'an attempt that is begun anew from within the end of the first one acquires the lock anew: %s, %s',
    async (path, how) => {
      const acquired: string[] = [];
      shop().locks.observe((event) => event.type === 'acquired' && acquired.push(event.resource));
      const answer = status(`${path}/${how}`);
      await eventually(() => expect(events).toEqual(['first began']));
      timeIsUp.open();
      if (how !== 'value') await eventually(async () => expect(await waiters()).toBe(1));
      mayEnd.open();
      expect(await answer).toBe(200);
      expect(events).toEqual(['first began', 'first ended', 'second began', 'second ended']);
      const once = path === 'anew' ? ['orders'] : ['stock', 'orders'];
      expect(acquired.toSorted()).toEqual([...once, ...once].toSorted());
      await eventually(async () => expect(await holders()).toBe(0));
      expect(shop().log.at('error')).toEqual([]);
    },
  );
});
