import { Controller, Inject, Injectable, type CanActivate, UseGuards } from '@nestjs/common';
import {
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { firstValueFrom, type Observable, of } from 'rxjs';
import { DistributedLock, LockExceptionFilter, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { inMemory, type LogBook, useApps } from '../nest-apps.js';

const heard: unknown[] = [];

@Injectable()
class Members implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

@Controller()
class StockController {
  @Inject() readonly locks!: RedisLockService;

  @DistributedLock((sku: string) => `sku:${sku}`)
  @MessagePattern('count.above')
  async countAbove(@Payload() sku: string): Promise<unknown> {
    return { sku, locked: this.locks.current()?.resource };
  }

  @MessagePattern('count.below')
  @UseGuards(Members)
  @DistributedLock((sku: string) => `sku:${sku}`)
  async countBelow(@Payload() sku: string): Promise<unknown> {
    return { sku, locked: this.locks.current()?.resource };
  }

  @DistributedLock('stock')
  @EventPattern('sold.above')
  async soldAbove(@Payload() sku: string): Promise<void> {
    heard.push(['above', sku, this.locks.current()?.resource]);
  }

  @EventPattern('sold.below')
  @DistributedLock('stock')
  async soldBelow(@Payload() sku: string): Promise<void> {
    heard.push(['below', sku, this.locks.current()?.resource]);
  }

  @MessagePattern('handler')
  @LockHandler((context) => `sku:${context.switchToRpc().getData<string>()}`)
  handler(): Observable<unknown> {
    return of(this.locks.current()?.resource);
  }

  @MessagePattern('busy')
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async busy(): Promise<void> {}

  @MessagePattern('skipped')
  @DistributedLock({ key: 'busy', onBusy: 'skip' })
  async skipped(): Promise<string | undefined> {
    return 'counted';
  }

  @EventPattern('delivered')
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async delivered(@Payload() _sku: string): Promise<void> {}
}

describe('@DistributedLock on the handlers of a microservice over TCP', () => {
  const start = useApps();
  let client: ClientProxy;
  let locks: RedisLockService;
  let log: LogBook;

  beforeEach(async () => {
    heard.length = 0;
    const port = await findFreePort();
    const running = await start({
      imports: [inMemory()],
      controllers: [StockController],
      configure: async (service) => {
        service.useGlobalFilters(new LockExceptionFilter());
        service.connectMicroservice(
          { transport: Transport.TCP, options: { port, host: '127.0.0.1' } },
          { inheritAppConfig: true },
        );
        await service.startAllMicroservices();
      },
    });
    log = running.log;
    locks = running.app.get(RedisLockService);
    client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port, host: '127.0.0.1' } });
  });
  afterEach(() => client.close());
  const ask = (pattern: string, data: unknown = ''): Promise<unknown> => firstValueFrom(client.send(pattern, data));

  it.each(['count.above', 'count.below'])('above and below @MessagePattern: %s', async (pattern) => {
    expect(await ask(pattern, 'A1')).toEqual({ sku: 'A1', locked: 'sku:A1' });
  });

  it('@LockHandler holds the lock while the handler’s stream runs', async () => {
    expect(await ask('handler', 'A1')).toBe('sku:A1');
    expect((await locks.inspect('sku:A1')).holders).toEqual([]);
  });

  it('an event that does not get its lock is dropped, and only the log shows it', async () => {
    await using _lease = await locks.acquire('busy');
    await firstValueFrom(client.emit('delivered', 'A1'), { defaultValue: undefined });
    await eventually(() =>
      expect(log.at('warn')).toEqual([
        expect.stringMatching(/^\w+\.\w+: "busy" is held by another call of this process.*An event is lost/s),
      ]),
    );
    expect(log.at('error')).toEqual([]);
  });

  it('tells the caller that the resource is busy, through the filter, and nothing of our insides', async () => {
    await using _lease = await locks.acquire('busy');
    const message = 'Another request is working on this. Try again later.';
    const told = { status: 'error', message, code: 'LOCK_BUSY', retryAfterMs: expect.any(Number) };
    expect(await rejection(ask('busy'))).toEqual(told);
  });
});
