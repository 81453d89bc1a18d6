import type { INestApplication, Provider, Type, WebSocketAdapter } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { LockExceptionFilter, RedisLockService } from 'nestjs-redis-lock';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { eventually } from '../../support/expect/eventually.js';
import { connectSocketIo, connectWs, type GatewayClient } from './clients.js';
import { AnsweringGateway, OrdersGateway } from './orders.gateway.js';
import { PaymentsGateway } from './payments.gateway.js';

type Platform = [string, (app: INestApplication) => WebSocketAdapter, (url: string) => Promise<GatewayClient>];
const PLATFORMS: Platform[] = [
  ['socket.io', (app) => new IoAdapter(app), (url) => connectSocketIo(io, url)],
  ['ws', (app) => new WsAdapter(app), (url) => connectWs(WebSocket, url)],
];

const BUSY = { status: 'error', message: 'Another request is working on this. Try again later.', code: 'LOCK_BUSY' };
/** Details for the operator only: the name of the resource, and its holder. */
const INSIDES = /secret|order:|redis|holder|token|process|\bpid\b|resource/i;

describe.each(PLATFORMS)('a gateway on %s', (platform, adapterFor, connect) => {
  const start = useApps();
  const clients: GatewayClient[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.leave()));

  interface Options {
    readonly filter?: LockExceptionFilter;
    readonly providers?: Provider[];
  }
  async function open<T>(gateway: Type<T>, { filter, providers = [] }: Options = {}) {
    const running = await start({
      imports: [inMemory()],
      providers: [gateway, ...providers],
      configure: (app) => {
        app.useWebSocketAdapter(adapterFor(app));
        if (filter) app.useGlobalFilters(filter);
      },
    });
    const join = async (): Promise<GatewayClient> => {
      const client = await connect(running.url);
      clients.push(client);
      return client;
    };
    const locks = running.app.get(RedisLockService);
    const waiters = async (resource: string): Promise<number> => (await locks.inspect(resource)).waiters.length;
    const holders = async (resource: string): Promise<number> => (await locks.inspect(resource)).holders.length;
    return { ...running, gateway: running.app.get(gateway), locks, waiters, holders, join, client: await join() };
  }

  it('works as its page shows', async () => {
    const { client, locks, holders } = await open(PaymentsGateway);
    expect(await client.ask('pay', { orderId: '7' })).toEqual({ event: 'paid', data: { orderId: '7' } });
    client.send('export', { userId: 'ada' });
    const part = (row: number): object => ({ event: 'row', data: row });
    await eventually(() => expect(client.heard.slice(1)).toEqual([part(1), part(2), part(3)]));
    await eventually(async () => expect(await holders('export:ada')).toBe(0));
    await using _lease = await locks.acquire('order:7');
    const told = { ...BUSY, code: 'LOCK_TIMEOUT', retryAfterMs: expect.any(Number) };
    const cause = { pattern: 'pay', data: { orderId: '7' } };
    expect(await client.ask('pay', { orderId: '7' })).toEqual({ event: 'exception', data: { ...told, cause } });
  });

  it('locks, above and below @SubscribeMessage, and releases', async () => {
    const { client, holders } = await open(AnsweringGateway);
    for (const how of ['method.above', 'method.below', 'method.bare', 'handler.above', 'handler.below']) {
      expect([how, await client.ask(how, '7')]).toEqual([how, { event: 'done', data: 'order:7' }]);
    }
    await eventually(async () => expect(await holders('order:7')).toBe(0));
  });

  it.each(['impatient.method', 'impatient.handler'])(
    'the filter tells the client, in the form of Nest: %s',
    async (how) => {
      const { client, locks, log } = await open(AnsweringGateway);
      await using _lease = await locks.acquire('order:7');
      const told = (await client.ask(how, '7')) as { event: string; data: Record<string, unknown> };
      expect(told).toEqual({
        event: 'exception',
        data: { ...BUSY, retryAfterMs: expect.any(Number), cause: { pattern: how, data: '7' } },
      });
      expect(told.data['retryAfterMs']).toBeLessThanOrEqual(5_000);
      expect(JSON.stringify({ ...told.data, code: '' })).not.toMatch(INSIDES);
      // One answer, and the connection lives on.
      expect(await client.ask('method.below', '8')).toEqual({ event: 'done', data: 'order:8' });
      expect(client.heard).toHaveLength(2);
      expect(log.at('error')).toEqual([]);
    },
  );

  const GLOBAL: [string, Options][] = [
    ['no filter', {}],
    ['a filter in useGlobalFilters', { filter: new LockExceptionFilter() }],
    ['a filter as APP_FILTER', { providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] }],
  ];
  it.each(GLOBAL)('with %s, Nest answers in words of its own, and logs ours', async (_, options) => {
    const { client, locks, log } = await open(OrdersGateway, options);
    const warning = expect.stringContaining('Put @UseFilters(LockExceptionFilter) on OrdersGateway');
    expect(log.at('warn')).toEqual(options.providers ? [warning] : []);
    await using _lease = await locks.acquire('order:secret');
    for (const how of ['impatient.method', 'impatient.handler']) {
      expect(await client.ask(how, 'secret')).toEqual({
        event: 'exception',
        data: { status: 'error', message: 'Internal server error', cause: { pattern: how, data: 'secret' } },
      });
    }
    expect(log.at('error')).toEqual([
      expect.stringMatching(/^LockBusyError: OrdersGateway\.impatientMethod: "order:secret" has been held/),
      expect.stringMatching(/^LockBusyError: OrdersGateway\.impatientHandler: "order:secret" has been held/),
    ]);
  });

  it('a stream is sent under the lock, which is released at its end', async () => {
    const { client, holders } = await open(AnsweringGateway);
    client.send('stream');
    const part = (count: number): object => ({ event: 'part', data: [count, 'stream'] });
    await eventually(() => expect(client.heard).toEqual([part(0), part(1), part(2)]));
    await eventually(async () => expect(await holders('stream')).toBe(0));
  });

  it('a stream without end is released when its client leaves', async () => {
    const { client, holders } = await open(AnsweringGateway);
    expect(await client.ask('endless')).toEqual({ event: 'part', data: 'endless' });
    expect(await holders('endless')).toBe(1);
    client.leave();
    await eventually(async () => expect(await holders('endless')).toBe(0));
  });

  const WAYS: [string, (client: GatewayClient) => void][] = [
    ['without acknowledgement', (client) => client.send('handler.below', '7')],
    ...(platform === 'socket.io'
      ? [
          [
            'with acknowledgement',
            (client) => void client.askForAck!('acknowledged', '7').catch(() => {}),
          ] as (typeof WAYS)[number],
        ]
      : []),
  ];
  it.each(WAYS)('a client that disconnects stops waiting, and its handler does not run: %s', async (_, ask) => {
    const { client, locks, gateway, waiters, join, log } = await open(AnsweringGateway);
    const lease = await locks.acquire('order:7');
    ask(client);
    await eventually(async () => expect(await waiters('order:7')).toBe(1));
    client.leave();
    await eventually(async () => expect(await waiters('order:7')).toBe(0));
    await lease.release();
    expect(await (await join()).ask('handler.below', '7')).toEqual({ event: 'done', data: 'order:7' });
    expect(gateway.ran).toBe(1);
    expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
  });
});
