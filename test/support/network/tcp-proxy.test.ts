import { Redis, type RedisOptions } from 'ioredis';
import { eventually, rejection } from '../expect/eventually.js';
import { useRedis } from '../redis/redis-server.js';
import { TcpProxy } from './tcp-proxy.js';
import { track } from '../expect/tracked.js';

const ADD = `return redis.call('INCR', KEYS[1])`;

describe('a network between a client and Redis', () => {
  const redis = useRedis({ args: ['--user', 'app', 'on', '>secret', '~*', '&*', '+@all', '-ping'] });
  const other = useRedis();
  let proxy: TcpProxy;
  let admin: Redis;
  const clients: Redis[] = [];
  beforeEach(async () => {
    proxy = await TcpProxy.start(redis().port);
    admin = new Redis(redis().url);
    await admin.flushall();
  });
  afterEach(async () => {
    for (const client of [admin, ...clients.splice(0)]) if (client.status !== 'end') client.disconnect();
    await proxy[Symbol.asyncDispose]();
  });

  /** A client that sends nothing twice, and what it noticed of its connection. */
  const connect = async (options: RedisOptions = {}): Promise<{ client: Redis; noticed: string[] }> => {
    const client = new Redis(proxy.port, {
      username: 'app',
      password: 'secret',
      db: 3,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: () => null,
      ...options,
    });
    clients.push(client);
    const noticed: string[] = [];
    client.on('error', (error: NodeJS.ErrnoException) => noticed.push(error.code ?? error.message));
    client.on('close', () => noticed.push('close'));
    await client.set('ready', '1');
    return { client, noticed };
  };
  const connectionsOfApp = async (): Promise<number> =>
    String(await admin.client('LIST'))
      .split('\n')
      .filter((line) => line.includes('user=app')).length;
  /** Waits in Redis: nothing is under way. Gives its end. */
  const blocked = async (client: Redis): Promise<() => Promise<Error>> => {
    const reply = rejection(client.blpop('never', 0));
    await eventually(async () => expect(await admin.info('clients')).toContain('blocked_clients:1'));
    return () => reply;
  };
  const count = async (): Promise<number> => {
    await admin.select(3);
    return Number(await admin.get('count'));
  };

  it('resets connections: an error at the client, and at once', async () => {
    const { client, noticed } = await connect();
    const reply = await blocked(client);
    proxy.reset('subscriber');
    proxy.reset('commands');
    await reply();
    expect(noticed).toEqual(['ECONNRESET', 'close']);
    await eventually(async () => expect(await connectionsOfApp()).toBe(0));
  });

  it('cuts them without an error', async () => {
    const { client, noticed } = await connect();
    const reply = await blocked(client);
    proxy.cut();
    await reply();
    expect(noticed).toEqual(['close']);
  });

  it('half-closes a subscriber: it is gone, and Redis counts it until all is well again', async () => {
    const { client, noticed } = await connect();
    await client.subscribe('channel');
    const caller = await connect();
    proxy.halfClose('subscriber');
    await eventually(() => expect(noticed).toEqual(['close']));
    expect(await admin.publish('channel', 'hello')).toBe(1);
    expect(await caller.client.incr('count')).toBe(1);
    proxy.heal();
    await eventually(async () => expect(await connectionsOfApp()).toBe(1));
    expect(caller.noticed).toEqual([]);
  });

  it('half-closes a connection for commands: what the client writes goes nowhere', async () => {
    const { client } = await connect();
    proxy.halfClose('commands');
    await rejection(client.incr('count'));
    expect(await connectionsOfApp()).toBe(1);
    expect(await count()).toBe(0);
  });

  it('loses bytes for a while, and resets the connections that missed some', async () => {
    const [quiet, busy] = [await connect(), await connect()];
    proxy.dropAll();
    const reply = track(busy.client.incr('count'));
    await admin.ping();
    expect(reply.state).toBe('pending');
    proxy.heal();
    await eventually(() => expect(reply.state).toBe('rejected'));
    expect(busy.noticed).toEqual(['ECONNRESET', 'close']);
    expect(await count()).toBe(0);
    expect(await quiet.client.incr('count')).toBe(1);
  });

  it('forgets the connections of now: nothing tells them, and new ones are well', async () => {
    const { client, noticed } = await connect();
    proxy.forget();
    const reply = track(client.incr('count'));
    const again = await connect();
    expect(await again.client.incr('count')).toBe(1);
    expect([reply.state, noticed]).toEqual(['pending', []]);
    proxy.heal();
    await eventually(() => expect(noticed).toEqual(['ECONNRESET', 'close']));
    expect(await again.client.incr('count')).toBe(2);
  });

  it('tells when the client subscribes on another connection', async () => {
    const { client } = await connect();
    await client.subscribe('channel');
    const subscribed = track(proxy.nextSubscriber());
    const again = await connect();
    await client.subscribe('another');
    expect(subscribed.state).toBe('pending');
    await again.client.subscribe('channel');
    expect(subscribed.state).toBe('fulfilled');
  });

  it('loses the reply to the next script, after Redis executed it, also among others', async () => {
    const { client } = await connect();
    const sha = (await admin.script('LOAD', ADD)) as string;
    expect(await client.evalsha(sha, 1, 'count')).toBe(1);
    const lost = proxy.loseNextReply('commands');
    const before = client.get('count');
    const failures = [rejection(client.evalsha(sha, 1, 'count')), rejection(client.evalsha(sha, 1, 'count'))];
    await Promise.all([before.catch(() => undefined), ...failures, lost]);
    expect(await count()).toBeGreaterThanOrEqual(2);
    const again = await connect();
    expect(await again.client.evalsha(sha, 1, 'count')).toBeGreaterThanOrEqual(3);
  });

  it('lets a reply that is an error arrive, and loses the next', async () => {
    const { client } = await connect();
    await admin.script('FLUSH');
    const lost = proxy.loseReplyTo('count');
    expect((await rejection(client.evalsha('0'.repeat(40), 1, 'count'))).message).toMatch(/^NOSCRIPT/);
    expect(await client.get('ready')).toBe('1');
    await rejection(client.eval(ADD, 1, 'count'));
    await lost;
    expect(await count()).toBe(1);
  });

  it('answers a command with an error in its turn, and Redis does not get it, until it is allowed', async () => {
    const { client } = await connect();
    const refusal = proxy.refuse('incr', 'BUSY a script runs');
    const replies = await Promise.allSettled([client.get('ready'), client.incr('count'), client.get('ready')]);
    expect(replies).toMatchObject([{ value: '1' }, { reason: { message: 'BUSY a script runs' } }, { value: '1' }]);
    await rejection(client.incr('count'));
    expect(await count()).toBe(0);
    refusal.allow();
    expect([await client.incr('count'), refusal.count]).toEqual([1, 2]);
  });

  it('sends the last script again when the client comes back, as its user and in its database', async () => {
    const { client, noticed } = await connect({ retryStrategy: () => 1 });
    expect(await client.eval(ADD, 1, 'count')).toBe(1);
    await client.set('later', '1');
    const replayed = proxy.replayOnReconnect();
    proxy.cut();
    await replayed;
    expect(await count()).toBe(2);
    await eventually(async () => expect(await client.get('count')).toBe('2'));
    proxy.cut();
    await eventually(async () => expect(await client.get('count')).toBe('2'));
    expect(noticed.filter((what) => what === 'close')).toHaveLength(2);
  });

  it('leads to another server after a fail-over', async () => {
    let port = redis().port;
    await using moving = await TcpProxy.start(() => port);
    const client = new Redis(moving.port, { retryStrategy: () => 1 });
    clients.push(client);
    const runId = async (): Promise<string> => /run_id:(\w+)/.exec(await client.info('server'))![1]!;
    const first = await runId();
    port = other().port;
    expect(await runId()).toBe(first);
    moving.cut();
    await eventually(async () => expect(await runId()).not.toBe(first));
  });
});
