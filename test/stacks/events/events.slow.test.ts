import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Injectable } from '@nestjs/common';
import { LockBusyError, LockHandler, LockReentryError, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, type RunningApp, useApps } from '../../nest/nest-apps.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { Listeners, Orders } from './listeners.js';
import { Invoices } from './orders.js';

@Injectable()
class Unlocked {
  @OnEvent('x')
  @LockHandler('x')
  async listen(): Promise<void> {}
}

describe('@nestjs/event-emitter', () => {
  const startApps = useApps();
  const imports = [inMemory(), EventEmitterModule.forRoot()];
  const start = async (): Promise<RunningApp & { emitter: EventEmitter2; listeners: Listeners }> => {
    const running = await startApps({ imports, providers: [Invoices, Listeners, Orders] });
    return { ...running, emitter: running.app.get(EventEmitter2), listeners: running.app.get(Listeners) };
  };

  it('a listener is locked in both orders of the decorators, and gets the values of the event', async () => {
    const { app, emitter, listeners } = await start();
    await emitter.emitAsync('order.paid', { orderId: '7' });
    expect(app.get(Invoices).written).toEqual(['7']);
    emitter.emit('above', 7, 'urgent');
    await emitter.emitAsync('below', 8);
    expect(new Set(listeners.seen)).toEqual(
      new Set([
        ['above', 'above', 7, 'urgent'],
        ['below', 'below:8', 8],
      ]),
    );
  });

  it('several listeners of an event that lock the same take their turns', async () => {
    const { emitter, listeners } = await start();
    await Promise.all([emitter.emitAsync('several'), emitter.emitAsync('several')]);
    expect(listeners.seen).toEqual(Array.from({ length: 4 }, () => ['several', 1]));
  });

  it('a busy lock is logged, and the event is lost, unless suppressErrors is false', async () => {
    const { app, emitter, log } = await start();
    await using _held = await app.get(RedisLockService).acquire('busy');
    expect(await emitter.emitAsync('suppressed')).toEqual([undefined]);
    expect(log.lines).toContainEqual({ level: 'error', message: expect.stringContaining('"busy"'), context: 'Event' });
    expect(await rejection(emitter.emitAsync('thrown'))).toBeInstanceOf(LockBusyError);
  });

  it('a listener of an event that is emitted under its own lock is refused, not blocked', async () => {
    const { app } = await start();
    expect(await rejection(app.get(Orders).emitAndWait('order.changed'))).toBeInstanceOf(LockReentryError);
  });

  it('a listener that continues after the lock has none, and may lock the same again', async () => {
    const { app, listeners } = await start();
    await app.get(Orders).emit('order.printed');
    listeners.end.open();
    await eventually(() => expect(listeners.seen).toHaveLength(3));
    expect(listeners.seen).toEqual([
      ['printing', 'order'],
      ['after it', undefined],
      ['locked anew', 'order'],
    ]);
  });

  it('so may one that is called later', async () => {
    const { app, listeners } = await start();
    await app.get(Orders).emit('order.mailed');
    listeners.end.open();
    await eventually(() => expect(listeners.seen).toEqual([['mailed', undefined]]));
  });

  it('an application with @LockHandler on a listener does not start', async () => {
    const error = await rejection(startApps({ imports, providers: [Unlocked] }));
    expect(error.message).toMatch('Unlocked.listen has @LockHandler, which would never run');
  });
});
