import { Controller, Inject, type NestHybridApplicationOptions, type Provider } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import {
  type ClientOptions,
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  type RedisOptions,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import {
  DistributedLock,
  LockExceptionFilter,
  LockHandler,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { EmptyError, firstValueFrom, type Observable, of, toArray } from 'rxjs';
import { useApps } from '../../nest/nest-apps.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { type Import, ImportsController } from './imports.controller.js';

const BUSY = { status: 'error', message: 'Another request is working on this. Try again later.', code: 'LOCK_BUSY' };

let most = 0;
let running = 0;
let ran = 0;

/** Each answer names the resource under whose lock it was made. */
@Controller()
class StockController {
  @Inject() readonly locks!: RedisLockService;

  @DistributedLock((sku: string) => `sku:${sku}`)
  @MessagePattern('above')
  async above(@Payload() _sku: string): Promise<unknown> {
    return this.locks.current()?.resource;
  }

  @MessagePattern('below')
  @DistributedLock((sku: string) => `sku:${sku}`)
  async below(@Payload() _sku: string): Promise<unknown> {
    return this.locks.current()?.resource;
  }

  @MessagePattern('stream')
  @LockHandler((context) => `sku:${context.switchToRpc().getData<string>()}`)
  stream(): Observable<unknown> {
    const under = this.locks.current()?.resource;
    return of(1, 2, under);
  }

  @MessagePattern('busy')
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async busy(): Promise<void> {}

  @MessagePattern('busy handler')
  @LockHandler({ key: 'busy', waitMs: 0 })
  busyHandler(): void {}

  @MessagePattern('skipped')
  @LockHandler({ key: 'busy', onBusy: 'skip' })
  skipped(): string {
    return 'ran';
  }

  @MessagePattern('refused')
  @DistributedLock({
    key: 'busy',
    waitMs: 0,
    onBusy: () => {
      throw new RpcException({ code: 409, message: 'one at a time' });
    },
  })
  async refused(): Promise<void> {}

  /** One after the other, on whichever instance. */
  @EventPattern('sold')
  @DistributedLock('sold')
  async sold(@Payload() _sku: string): Promise<void> {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running--;
    ran++;
  }
}

describe('a hybrid application whose transport is Redis', () => {
  const redis = useRedis();
  const start = useApps();
  const clients: ClientProxy[] = [];
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });

  interface Options {
    readonly hybrid?: NestHybridApplicationOptions;
    readonly filter?: LockExceptionFilter;
    readonly providers?: Provider[];
  }
  async function serve({ hybrid = { inheritAppConfig: true }, filter, providers = [] }: Options = {}) {
    const instance = await start({
      imports: [RedisLockModule.forRoot({ connection: redis().url, shutdown: { drainMs: 0 } })],
      controllers: [StockController, ImportsController],
      providers,
      configure: async (app) => {
        if (filter) app.useGlobalFilters(filter);
        app.connectMicroservice(transport(), hybrid);
        await app.startAllMicroservices();
      },
    });
    return { ...instance, locks: instance.app.get(RedisLockService), imports: instance.app.get(ImportsController) };
  }

  const transport = (): RedisOptions => {
    const { hostname: host, port } = new URL(redis().url);
    return { transport: Transport.REDIS, options: { host, port: Number(port) } };
  };
  const connect = (): ClientProxy => {
    const client = ClientProxyFactory.create(transport() as ClientOptions);
    clients.push(client);
    return client;
  };
  const ask = (client: ClientProxy, pattern: string, data: unknown = ''): Promise<unknown> =>
    firstValueFrom(client.send(pattern, data));

  it('locks, above and below @MessagePattern, and for as long as a stream is sent', async () => {
    const { locks } = await serve();
    const client = connect();
    expect(await ask(client, 'above', 'A1')).toBe('sku:A1');
    expect(await ask(client, 'below', 'A1')).toBe('sku:A1');
    expect(await firstValueFrom(client.send('stream', 'A1').pipe(toArray()))).toEqual([1, 2, 'sku:A1']);
    await eventually(async () => expect((await locks.inspect('sku:A1')).holders).toEqual([]));
  });

  it('with inheritAppConfig, a global filter answers; a handler may answer in words of its own', async () => {
    const { locks } = await serve({ filter: new LockExceptionFilter() });
    const client = connect();
    await using _lease = await locks.acquire('busy');
    const told = { ...BUSY, retryAfterMs: expect.any(Number) };
    expect(await rejection(ask(client, 'busy'))).toEqual(told);
    expect(await rejection(ask(client, 'busy handler'))).toEqual(told);
    expect(await rejection(ask(client, 'refused'))).toEqual({ code: 409, message: 'one at a time' });
    expect(await rejection(ask(client, 'skipped'))).toBeInstanceOf(EmptyError);
  });

  const UNHEARD: [string, Options][] = [
    ['no filter', {}],
    ['useGlobalFilters and no inheritAppConfig', { hybrid: {}, filter: new LockExceptionFilter() }],
    [
      'APP_FILTER and no inheritAppConfig',
      { hybrid: {}, providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] },
    ],
  ];
  it.each(UNHEARD)('with %s, Nest answers in words of its own, and logs ours', async (_, options) => {
    const { locks, log } = await serve(options);
    const client = connect();
    await using _lease = await locks.acquire('busy');
    const told = { status: 'error', message: 'Internal server error' };
    expect(await rejection(ask(client, 'busy'))).toEqual(told);
    expect(await rejection(ask(client, 'busy handler'))).toEqual(told);
    const logged = expect.stringMatching(/^LockBusyError: \w+\.\w+: "busy" has been held/);
    expect(log.at('error')).toEqual([logged, logged]);
  });

  it('an APP_FILTER answers with inheritAppConfig', async () => {
    const { locks } = await serve({ providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] });
    await using _lease = await locks.acquire('busy');
    expect(await rejection(ask(connect(), 'busy'))).toMatchObject(BUSY);
  });

  describe('two instances', () => {
    it('each gets every event, and they handle it one after the other', async () => {
      await serve();
      await serve();
      const client = connect();
      for (let i = 0; i < 5; i++) await firstValueFrom(client.emit('sold', i), { defaultValue: undefined });
      await eventually(() => expect(ran).toBe(10));
      expect(most).toBe(1);
    });

    it('a message that is delivered again is dropped, while it is handled and for a minute', async () => {
      const instances = [await serve(), await serve()];
      const started = (): string[] => instances.flatMap(({ imports }) => imports.started);
      const client = connect();
      const deliver = (messageId: string): Promise<unknown> =>
        firstValueFrom(client.emit('import.requested', { messageId, file: messageId }), { defaultValue: undefined });
      const done = gate();
      let dropped = 0;
      for (const { imports, locks } of instances) {
        const begin = imports.import.bind(imports);
        imports.import = async (file) => {
          await begin(file);
          await done.opened;
        };
        locks.observe(({ type }) => void (dropped += Number(type === 'notAcquired')));
      }
      await deliver('a');
      await deliver('a');
      await eventually(() => expect(dropped).toBe(3));
      expect(started()).toEqual(['a']);
      done.open();
      await deliver('a');
      await eventually(() => expect(dropped).toBe(5));
      await deliver('b');
      await eventually(() => expect(dropped).toBe(6));
      expect(started()).toEqual(expect.arrayContaining(['a', 'b']));
      expect(started()).toHaveLength(2);
    });

    it('each answers a request, and the first answer counts: the one of the instance that is busy', async () => {
      const instances = [await serve(), await serve()];
      const client = connect();
      const done = gate();
      for (const { imports } of instances) imports.import = () => done.opened;
      const order: Import = { messageId: '1', file: 'a.csv' };
      expect(await ask(client, 'import.start', order)).toEqual({ isBusy: true });
      done.open();
    });
  });
});
