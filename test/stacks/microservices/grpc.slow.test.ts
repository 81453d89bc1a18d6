import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServiceError, status } from '@grpc/grpc-js';
import { Transport } from '@nestjs/microservices';
import { LockExceptionFilter, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { collect, GrpcClient, PROTO } from './grpc-client.js';
import { GrpcOrders } from './grpc-orders.js';

describe('a gRPC service', () => {
  const start = useApps();
  const folder = mkdtempSync(join(tmpdir(), 'grpc-'));
  const url = `unix:${join(folder, 'socket')}`;
  const clients: GrpcClient[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.close()));
  afterAll(() => rmSync(folder, { recursive: true }));

  async function serve({ filter = true } = {}) {
    const { app, log } = await start({
      imports: [inMemory()],
      controllers: [GrpcOrders],
      configure: async (service) => {
        if (filter) service.useGlobalFilters(new LockExceptionFilter());
        const options = { package: 'shop', protoPath: PROTO, url };
        service.connectMicroservice({ transport: Transport.GRPC, options }, { inheritAppConfig: true });
        await service.startAllMicroservices();
      },
    });
    const locks = app.get(RedisLockService);
    const waiters = async (resource: string): Promise<number> => (await locks.inspect(resource)).waiters.length;
    const holders = async (resource: string): Promise<number> => (await locks.inspect(resource)).holders.length;
    const client = new GrpcClient(url);
    clients.push(client);
    return { client, locks, log, waiters, holders, orders: app.get(GrpcOrders) };
  }

  it('locks, above and below @GrpcMethod, and guards still guard', async () => {
    const { client, holders, orders } = await serve();
    for (const how of ['Above', 'Below', 'HandlerAbove', 'HandlerBelow']) {
      expect([how, await client.ask(how, { id: '7' })]).toEqual([how, { under: 'order:7', count: 0 }]);
    }
    expect(await holders('order:7')).toBe(0);
    expect(await rejection(client.ask('Below', { id: 'a stranger' }))).toMatchObject({ details: 'Forbidden resource' });
    expect(orders.ran).toBe(4);
  });

  it('a stream of answers is sent under the lock, until its client cancels', async () => {
    const { client, holders } = await serve();
    const call = client.watch({ id: '7' });
    const { answers } = collect(call);
    await eventually(() => expect(answers).toEqual([{ under: 'order:7', count: 0 }]));
    expect(await holders('order:7')).toBe(1);
    call.cancel();
    await eventually(async () => expect(await holders('order:7')).toBe(0));
  });

  it('messages that come while the lock is waited for are kept for the handler', async () => {
    const { client, locks, waiters, holders } = await serve();
    const lease = await locks.acquire('order:7');
    const uploaded = client.upload('Upload', '7', [{ id: '1' }, { id: '2' }]);
    await eventually(async () => expect(await waiters('order:7')).toBe(1));
    await lease.release();
    expect(await uploaded).toEqual({ under: 'order:7', count: 2 });
    const talk = client.talk('Talk', '7');
    const { answers, ended } = collect(talk);
    talk.write({ id: '1' });
    await eventually(() => expect(answers).toEqual([{ under: 'order:7', count: 1 }]));
    expect(await holders('order:7')).toBe(1);
    talk.end();
    await ended;
    await eventually(async () => expect(await holders('order:7')).toBe(0));
  });

  it('@GrpcStreamCall holds the lock until the method has ended', async () => {
    const { client, holders } = await serve();
    const call = client.talk('Raw', '7');
    const { answers, ended } = collect(call);
    call.write({ id: '1' });
    await eventually(() => expect(answers).toEqual([{ under: 'raw', count: 1 }]));
    expect(await holders('raw')).toBe(1);
    call.end();
    await ended;
    expect(await client.upload('RawUpload', '7', [{ id: '1' }])).toEqual({ under: 'raw', count: 1 });
    await eventually(async () => expect(await holders('raw')).toBe(0));
  });

  it('the filter answers every kind of call with a status, and nothing of our insides', async () => {
    const { client, locks } = await serve();
    await using _order = await locks.acquire('order:7');
    await using _raw = await locks.acquire('raw');
    const raw = client.talk('Raw', '7');
    const talk = client.talk('Talk', '7');
    const refusals: Record<string, Promise<unknown>> = {
      LOCK_BUSY: client.ask('Pay', { id: '7' }),
      'LOCK_BUSY of a raw stream': collect(raw).ended,
      'LOCK_BUSY of a raw upload': client.upload('RawUpload', '7', []),
      LOCK_TIMEOUT: collect(client.watch({ id: '7' })).ended,
      'LOCK_TIMEOUT of a stream': collect(talk).ended,
      'LOCK_TIMEOUT of an upload': client.upload('Upload', '7', [{ id: '1' }]),
    };
    Object.values(refusals).forEach((refusal) => void refusal.catch(() => {}));
    for (const [name, refusal] of Object.entries(refusals)) {
      const { code, details, metadata } = await rejection<ServiceError>(refusal);
      const told = {
        ...metadata.getMap(),
        'grpc-retry-pushback-ms': Number(metadata.get('grpc-retry-pushback-ms')[0]),
      };
      expect([name, code, details]).toEqual([
        name,
        status.ABORTED,
        'Another request is working on this. Try again later.',
      ]);
      expect(told).toMatchObject({ 'lock-error-code': name.split(' ')[0] });
      expect(told['grpc-retry-pushback-ms']).toBeGreaterThan(0);
      expect(told['grpc-retry-pushback-ms']).toBeLessThanOrEqual(5_000);
      expect(JSON.stringify(metadata.toJSON())).not.toMatch(/order|raw|redis|holder|pid/);
    }
  });

  it('a client that retries what was aborted waits as long as it was told', async () => {
    const { locks, log } = await serve();
    const retryPolicy = {
      maxAttempts: 5,
      initialBackoff: '60s',
      maxBackoff: '60s',
      backoffMultiplier: 1,
      retryableStatusCodes: ['ABORTED'],
    };
    const methodConfig = [{ name: [{ service: 'shop.Orders' }], retryPolicy }];
    const patient = new GrpcClient(url, {
      'grpc.service_config': JSON.stringify({ loadBalancingConfig: [], methodConfig }),
    });
    clients.push(patient);
    const lease = await locks.acquire('order:7', { leaseMs: 1_000 });
    const paid = patient.ask('Pay', { id: '7' });
    const told = (): string[] => log.at('warn').filter((line) => line.includes('has been held by'));
    await eventually(() => expect(told()).toHaveLength(1));
    await lease.release();
    expect(await paid).toEqual({ under: 'order:7', count: 0 });
  });

  it('without the filter, Nest answers in words of its own', async () => {
    const { client, locks, log } = await serve({ filter: false });
    await using _lease = await locks.acquire('order:7');
    expect(await rejection(client.ask('Pay', { id: '7' }))).toMatchObject({
      code: status.UNKNOWN,
      details: 'Internal server error',
    });
    expect(log.at('error')).toEqual([
      expect.stringMatching(/^LockBusyError: GrpcOrders\.pay: "order:7" has been held/),
    ]);
  });

  it('a status of your own, by an RpcException', async () => {
    const { client, locks } = await serve();
    await using _lease = await locks.acquire('order:7');
    expect(await rejection(client.ask('Refused', { id: '7' }))).toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: 'one at a time',
    });
  });

  it("onBusy: 'skip' is no answer of gRPC: a call has a message or a status", async () => {
    const { client, locks } = await serve();
    await using _lease = await locks.acquire('order:7');
    expect(await rejection(client.ask('Skipped', { id: '7' }))).toMatchObject({
      code: status.INTERNAL,
      details: 'Error serializing response',
    });
  });

  it.each(['cancels', 'has no time left'])('a client that %s stops waiting', async (how) => {
    const { client, locks, waiters, orders, log } = await serve();
    const lease = await locks.acquire('order:7');
    const { cancel, answer } = client.begin('HandlerBelow', { id: '7' }, how === 'cancels' ? 30_000 : 3_000);
    await eventually(async () => expect(await waiters('order:7')).toBe(1));
    if (how === 'cancels') cancel();
    const code = how === 'cancels' ? status.CANCELLED : status.DEADLINE_EXCEEDED;
    expect(await rejection(answer)).toMatchObject({ code });
    await eventually(async () => expect(await waiters('order:7')).toBe(0));
    await lease.release();
    expect(await client.ask('HandlerBelow', { id: '7' })).toEqual({ under: 'order:7', count: 0 });
    expect(orders.ran).toBe(1);
    expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
  });

  it.each(['Watch', 'Talk', 'Upload'])('a client that cancels its stream stops waiting: %s', async (method) => {
    const { client, locks, waiters, orders, log } = await serve();
    await using _lease = await locks.acquire('order:7');
    const uploading = method === 'Upload' ? client.beginUpload(method, '7') : undefined;
    const stream = uploading ? undefined : method === 'Watch' ? client.watch({ id: '7' }) : client.talk(method, '7');
    const ended = uploading?.answer ?? collect(stream!).ended;
    await eventually(async () => expect(await waiters('order:7')).toBe(1));
    (uploading?.call ?? stream)!.cancel();
    expect(await rejection<unknown>(ended)).toMatchObject({ code: status.CANCELLED });
    await eventually(async () => expect(await waiters('order:7')).toBe(0));
    expect(orders.ran).toBe(0);
    expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
  });
});
