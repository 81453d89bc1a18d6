import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Injectable } from '@nestjs/common';
import { LockBusyError, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, type RunningApp, useApps } from '../../nest/nest-apps.js';
import { rejection } from '../../support/expect/eventually.js';
import { Listeners } from './listeners.js';
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
    const running = await startApps({ imports, providers: [Invoices, Listeners] });
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

  it('a busy lock is logged, and the event is lost, unless suppressErrors is false', async () => {
    const { app, emitter, log } = await start();
    await using _held = await app.get(RedisLockService).acquire('busy');
    expect(await emitter.emitAsync('suppressed')).toEqual([undefined]);
    expect(log.lines).toContainEqual({ level: 'error', message: expect.stringContaining('"busy"'), context: 'Event' });
    expect(await rejection(emitter.emitAsync('thrown'))).toBeInstanceOf(LockBusyError);
  });

  it('an application with @LockHandler on a listener does not start', async () => {
    const error = await rejection(startApps({ imports, providers: [Unlocked] }));
    expect(error.message).toMatch('Unlocked.listen has @LockHandler, which would never run');
  });
});
