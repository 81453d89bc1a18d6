import { CommandBus, CqrsModule, QueryBus, UnhandledExceptionBus } from '@nestjs/cqrs';
import { LockBusyError, LockReentryError, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, type RunningApp, useApps } from '../../nest/nest-apps.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import {
  Bookkeeping,
  CancelOrder,
  CancelOrderHandler,
  CountOrder,
  CountOrderHandler,
  Hasty,
  Impatient,
  LockedCommandHandler,
  LockedEventsHandler,
  LockedQueryHandler,
  Mails,
  seen,
  SendMailHandler,
} from './handlers.js';
import { Order, Orders, OrderShipped, ShipOrder, ShipOrderHandler } from './ship-order.js';

/** Loses updates, unless only one caller loads and saves an order at a time. */
class OrdersInMemory extends Orders {
  readonly #parcels = new Map<string, number>();

  async load(id: string): Promise<Order> {
    const order = new Order(id);
    order.parcels = this.#parcels.get(id) ?? 0;
    await new Promise(setImmediate);
    return order;
  }

  async save({ id, parcels }: Order): Promise<void> {
    await new Promise(setImmediate);
    this.#parcels.set(id, parcels);
  }
}

interface Unhandled {
  readonly cause: unknown;
  readonly exception: unknown;
}

describe('@nestjs/cqrs', () => {
  const startApps = useApps();
  const start = async (
    ...more: (new (...args: never[]) => object)[]
  ): Promise<RunningApp & { unhandled: Unhandled[] }> => {
    seen.length = 0;
    const running = await startApps({
      imports: [inMemory(), CqrsModule.forRoot()],
      providers: [ShipOrderHandler, { provide: Orders, useClass: OrdersInMemory }, ...more],
    });
    const unhandled: Unhandled[] = [];
    running.app.get(UnhandledExceptionBus).subscribe((info) => unhandled.push(info));
    return { ...running, unhandled };
  };

  it('commands for one aggregate are done one after the other', async () => {
    const { app } = await start();
    const bus = app.get(CommandBus);
    await Promise.all(Array.from({ length: 10 }, () => bus.execute(new ShipOrder('7'))));
    expect((await app.get(Orders).load('7')).parcels).toBe(10);
  });

  it('queries, and handlers that Nest makes anew for each command, are locked too', async () => {
    const { app } = await start(CountOrderHandler, CancelOrderHandler);
    expect(await app.get(QueryBus).execute(new CountOrder('7'))).toEqual(['read', 'order:7']);
    expect(await app.get(CommandBus).execute(new CancelOrder('8'))).toEqual(['order:8', 'AsyncContext']);
  });

  it('handlers of events and commands of sagas have locks of their own, after that of the command', async () => {
    const { app, unhandled } = await start(Bookkeeping, Mails, SendMailHandler);
    await app.get(CommandBus).execute(new ShipOrder('7'));
    await eventually(() => expect(seen).toHaveLength(2));
    expect(new Set(seen)).toEqual(
      new Set([
        ['booked', '7', 'order:7'],
        ['mailed', '7', 'mail:7'],
      ]),
    );
    expect(unhandled).toEqual([]);
  });

  it('an event whose handler finds the lock busy is lost, and goes to the UnhandledExceptionBus', async () => {
    const { app, unhandled, log } = await start(Impatient);
    await using _held = await app.get(RedisLockService).acquire('mail');
    await app.get(CommandBus).execute(new ShipOrder('7'));
    await eventually(() => expect(unhandled).toHaveLength(1));
    expect(unhandled).toEqual([{ cause: expect.any(OrderShipped), exception: expect.any(LockBusyError) }]);
    expect(log.at('error')).toEqual([expect.stringContaining('has thrown an unhandled exception')]);
  });

  it('so is an event that is published under the lock which its handler wants', async () => {
    const { app, unhandled } = await start(Bookkeeping, Hasty);
    await app.get(Hasty).ship('7');
    await eventually(() => expect(unhandled).toHaveLength(1));
    expect(unhandled[0]!.exception).toBeInstanceOf(LockReentryError);
    expect(seen).toEqual([]);
  });

  it.each([LockedCommandHandler, LockedQueryHandler, LockedEventsHandler])(
    'an application with @LockHandler on a handler does not start: %p',
    async (handler) => {
      const error = await rejection(start(handler));
      expect(error.message).toMatch('.execute has @LockHandler, which would never run');
    },
  );
});
