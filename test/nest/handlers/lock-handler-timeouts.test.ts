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
  UseInterceptors,
} from '@nestjs/common';
import { type Observable, retry } from 'rxjs';
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

  /** The lower interceptor is the outer one. */
  @Get('retried-outside')
  @LockHandler('orders')
  @UseInterceptors(RetryInterceptor)
  async retriedOutside(): Promise<string> {
    return this.#thirdTime();
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

  it('a request that is given up while it waits for the lock leaves the queue', async () => {
    await using _held = await shop().locks.acquire('orders');
    const first = status('outside/first');
    await eventually(async () => expect(await waiters()).toBe(1));
    timeIsUp.open();
    expect(await first).toBe(408);
    await eventually(async () => expect(await waiters()).toBe(0));
    expect(events).toEqual([]);
  });

  it('an interceptor that calls the handler again does so under the same lock', async () => {
    const acquired: string[] = [];
    shop().locks.observe((event) => event.type === 'acquired' && acquired.push(event.resource));
    expect(await (await fetch(`${shop().url}/orders/retried`)).text()).toBe('3 attempts under orders');
    expect(acquired).toEqual(['orders']);
    expect(await holders()).toBe(0);
  });

  it('an interceptor around the lock that begins anew acquires the lock anew', async () => {
    const acquired: string[] = [];
    shop().locks.observe((event) => event.type === 'acquired' && acquired.push(event.resource));
    expect(await (await fetch(`${shop().url}/orders/retried-outside`)).text()).toBe('3 attempts under orders');
    expect(acquired).toEqual(['orders', 'orders', 'orders']);
    expect(await holders()).toBe(0);
  });
});
