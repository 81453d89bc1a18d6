import { EventEmitter, once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { Credentials, type RedisCredentials } from '../../../lib/redis/connection/credentials.js';
import { safeOptions } from '../../../lib/redis/connection/ioredis-options.js';
import { mendQuirks } from '../../../lib/redis/connection/ioredis-quirks.js';
import { ServerConnection } from '../../../lib/redis/connection/server-connection.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';

const BUSY = '-BUSY Redis is busy running a script.';

describe('the handshake of a connection', () => {
  let server: Server;
  const clients: Redis[] = [];
  /** The server's reply to each command. */
  let answers: Record<string, string>;
  let onCommand: (command: string) => void;

  beforeEach(async () => {
    answers = { select: '+OK', auth: '+OK' };
    onCommand = () => {};
    server = createServer((socket: Socket) => {
      socket.setEncoding('utf8').on('error', () => {});
      socket.on('data', (text: string) => {
        for (const [, name] of text.matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
          const command = name!.toLowerCase();
          onCommand(command);
          socket.write(`${answers[command] ?? '+OK'}\r\n`);
        }
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    await new Promise((resolve) => server.close(resolve));
  });

  /** A client, and for each connection that it made: which attempt it was since one was accepted. */
  const connect = (options: RedisOptions) => {
    const attempts: number[] = [];
    const { port } = server.address() as AddressInfo;
    const retryStrategy = (attempt: number): number => {
      attempts.push(attempt);
      return 1;
    };
    const shared = { lazyConnect: true, enableReadyCheck: false, connectionName: 'one', protocol: 2 };
    const client = new Redis({ port, host: '127.0.0.1', retryStrategy, ...shared, ...options } as RedisOptions);
    mendQuirks(client);
    const seen: string[] = [];
    client.on('ready', () => seen.push('ready')).on('error', ({ message }: Error) => seen.push(message));
    clients.push(client);
    client.connect().catch(() => {});
    return { client, attempts, seen };
  };

  it.each([
    ['select', { db: 3 }],
    ['auth', { password: 'secret' }],
  ])(
    'that Redis refuses (%s) is none: it is made anew, after pauses that grow, until Redis accepts it',
    async (command, options) => {
      answers[command] = BUSY;
      const { client, attempts, seen } = connect(options);
      await eventually(() => expect(attempts.length).toBeGreaterThan(4));
      expect(new Set(seen)).toEqual(new Set([BUSY.slice(1)]));
      expect(client.status).not.toBe('ready');
      answers[command] = '+OK';
      await eventually(() => expect(seen.at(-1)).toBe('ready'));
      expect(attempts).toEqual(attempts.map((_, i) => i + 1));
      client.disconnect(true);
      await eventually(() => expect(seen.slice(-2)).toEqual(['ready', 'ready']));
      expect(attempts.at(-1)).toBe(1);
    },
  );

  it('continues if the server does not know HELLO, and refuses its arguments', async () => {
    answers.hello = "-ERR unknown command 'HELLO'";
    answers.select = '-NOAUTH Authentication required.';
    onCommand = (command) => {
      if (command === 'auth') answers.select = '+OK';
    };
    const { client, attempts } = connect({ protocol: 3, password: 'secret', db: 3 } as RedisOptions);
    await eventually(() => expect(client.status).toBe('ready'));
    expect(attempts).toEqual([]);
  });

  it('may lack a name: what ioredis does without, is no refusal', async () => {
    answers['client'] = '-NOPERM this user has no permissions';
    const { attempts, seen } = connect({ db: 3 });
    await eventually(() => expect(seen).toEqual(['ready']));
    expect(attempts).toEqual([]);
  });
});

describe('a connection that is not made says why', () => {
  let server: Server;
  const sockets = new Set<Socket>();
  const connections: ServerConnection[] = [];
  /** Handles a connection of the server, and its input. */
  let onSocket: (socket: Socket) => void;
  let onData: (socket: Socket) => void;

  beforeEach(async () => {
    [onSocket, onData] = [() => {}, () => {}];
    server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}).on('data', () => onData(socket)));
      onSocket(socket);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(async () => {
    for (const connection of connections.splice(0)) connection.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  const connect = (options: RedisOptions = {}): ServerConnection => {
    const { port } = server.address() as AddressInfo;
    const model = new Redis({ host: '127.0.0.1', port, lazyConnect: true, ...options });
    const quick = { connectTimeout: 300, socketTimeout: 300 };
    const connection = new ServerConnection(model, { ...safeOptions('one', 30_000), ...quick });
    connections.push(connection);
    connection.connect();
    return connection;
  };
  const reasonOf = (connection: ServerConnection): string =>
    connection.describeTrouble().replace(/^not connected to Redis at 127\.0\.0\.1:\d+ ?/, '');

  it('to a port without TLS, by TLS: at once, and after its time', async () => {
    const accepted = once(server, 'connection');
    const connection = connect({ tls: {} });
    await accepted;
    await eventually(() => expect(reasonOf(connection)).toMatch(/^\(no TLS handshake yet/));
    await eventually(() => expect(reasonOf(connection)).toMatch(/^\(connect ETIMEDOUT\. If the port expects no TLS/));
  });

  it('to a server that answers TLS in plain text', async () => {
    onData = (socket) => void socket.end('-ERR unknown command\r\n');
    const connection = connect({ tls: {} });
    await eventually(() =>
      expect(reasonOf(connection)).toMatch(/wrong version number.*\. If the port expects no TLS/i),
    );
  });

  it('to a port that never answers: at once, and after its time', async () => {
    const connection = connect();
    await eventually(() => expect(reasonOf(connection)).toMatch(/^\(connected, but the server has not answered yet/));
    await eventually(() => expect(reasonOf(connection)).toMatch(/^\(Socket timeout/));
  });

  it.each([
    ['at once', () => (onSocket = (socket) => void socket.end('-ERR max number of clients reached\r\n'))],
    ['after a command', () => (onData = (socket) => void socket.end('-ERR max number of clients reached\r\n'))],
  ])('to a server that has too many clients, and says so %s', async (_, act) => {
    act();
    const connection = connect();
    await eventually(() => expect(reasonOf(connection)).toBe('(ERR max number of clients reached)'));
  });

  it.each([
    ['closes', () => (onData = (socket) => void socket.end())],
    ['resets', () => (onData = (socket) => void socket.resetAndDestroy())],
  ])('to a proxy that %s a connection at a command that it does not know', async (_, act) => {
    act();
    const connection = connect();
    await eventually(() => expect(reasonOf(connection)).toMatch(/^\(the server closes the connection at once/));
    await eventually(() => expect(reasonOf(connection)).toContain('a proxy'));
  });
});

const MINUTE_MS = 60_000;

/** A client of ioredis, of which only what the credentials touch is there. */
class FakeClient extends EventEmitter {
  status = 'wait';
  readonly condition: { auth?: unknown; subscriber: boolean; protocol?: number } = { subscriber: false };
  readonly connector = { connecting: false, connect: async () => ({}) };
  readonly shown: unknown[][] = [];
  /** The reply of Redis to AUTH. */
  answer: Error | 'OK' = 'OK';

  /** Resolves when the handshake is accepted. */
  async open(): Promise<void> {
    this.emit('connecting');
    await this.connector.connect();
    this.status = 'ready';
    this.emit('ready');
  }

  async call(...words: unknown[]): Promise<unknown> {
    this.shown.push(words);
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }
}

class World {
  readonly clock = new FakeClock();
  readonly lines: string[] = [];
  calls = 0;
  /** The next result of the provider. */
  provide: () => RedisCredentials | Promise<RedisCredentials> = () => ({ password: `secret-${this.calls}` });
  readonly credentials = new Credentials(
    () => {
      this.calls++;
      return this.provide();
    },
    (line) => this.lines.push(line),
    this.clock,
  );

  client(renew?: () => Promise<void>): FakeClient {
    const client = new FakeClient();
    client.on('error', () => {});
    this.credentials.attach(client as unknown as Redis, renew);
    return client;
  }

  in(ms: number): Date {
    return new Date(this.clock.wallNow() + ms);
  }
}

function refused(message = 'WRONGPASS invalid username-password pair'): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

describe('credentials that change', () => {
  it('are asked for once for connections that are made at the same time, and again for the next', async () => {
    const world = new World();
    const [a, b] = [world.client(), world.client()];
    await Promise.all([a.open(), b.open()]);
    expect([a.condition.auth, b.condition.auth, world.calls]).toEqual(['secret-1', 'secret-1', 1]);
    await a.open();
    await settle();
    expect(a.condition.auth).toBe('secret-2');
    // The other connection is open, and shows the new ones.
    expect(b.shown).toEqual([['AUTH', 'secret-2']]);
  });

  it('are requested again after four fifths of their lifetime, and sent by AUTH', async () => {
    const world = new World();
    world.provide = () => ({ username: 'app', password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    expect(client.condition.auth).toEqual(['app', 'secret-1']);
    await world.clock.advance(47_900);
    expect(world.calls).toBe(1);
    await world.clock.advance(200);
    expect(client.shown).toEqual([['AUTH', 'app', 'secret-2']]);
    await world.clock.advance(48_000);
    expect(client.shown).toHaveLength(2);
  });

  it('are not sent again if they are the same', async () => {
    const world = new World();
    world.provide = () => ({ password: 'same', expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    await world.clock.advance(10 * MINUTE_MS);
    expect(client.shown).toEqual([]);
    expect(world.calls).toBeGreaterThan(10);
  });

  it.each([
    ['with RESP2 by a new connection', undefined, { renewed: 1, shown: 0 }],
    ['with RESP3 by AUTH', 3, { renewed: 0, shown: 1 }],
  ])('are shown where a client listens: %s', async (_, protocol, expected) => {
    const world = new World();
    world.provide = () => ({ password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    let renewed = 0;
    const client = world.client(async () => void renewed++);
    await client.open();
    Object.assign(client.condition, { subscriber: true, protocol });
    await world.clock.advance(50_000);
    expect({ renewed, shown: client.shown.length }).toEqual(expected);
  });

  it('of a provider that fails: tried again after longer and longer pauses, with a line a minute', async () => {
    const world = new World();
    world.provide = () => ({ password: 'hunter2', expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    world.provide = () => Promise.reject(new Error('no token in place of hunter2'));
    await world.clock.advance(48_000 + 3 * MINUTE_MS);
    // 1, 2, 4, 8, 16, 30, 30 ... s
    expect(world.calls).toBeGreaterThan(8);
    expect(world.calls).toBeLessThan(14);
    expect(world.lines).toHaveLength(3);
    expect(world.lines[0]).toBe(
      'credentials() of the connection to Redis failed: no token in place of ***. Open connections keep the last ' +
        'credentials, and credentials() will be called again.',
    );
    expect(client.shown).toEqual([]);
    expect(world.credentials.problem).toContain('no token');
    world.provide = () => ({ password: 'next' });
    await world.clock.advance(MINUTE_MS);
    expect(client.shown).toEqual([['AUTH', 'next']]);
    expect(world.credentials.problem).toBeUndefined();
  });

  it('that Redis refuses are shown again after longer and longer pauses, and the connection stays', async () => {
    const world = new World();
    world.provide = () => ({ password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    client.answer = refused();
    world.provide = () => ({ password: 'wrong', expiresAt: world.in(MINUTE_MS) });
    await world.clock.advance(48_000 + MINUTE_MS);
    expect(client.status).toBe('ready');
    expect(client.shown.length).toBeGreaterThan(3);
    expect(client.shown.length).toBeLessThan(10);
    expect(world.lines[0]).toContain('AUTH on an open connection failed: WRONGPASS');
    expect(world.lines.join()).not.toContain('wrong,');
  });

  it('of a provider that hangs: a new connection takes the last ones after 3 s, if they have not expired', async () => {
    const world = new World();
    world.provide = () => ({ password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    world.provide = () => new Promise(() => {});
    let isOpen = false;
    void client.open().then(() => (isOpen = true));
    await world.clock.advance(2_900);
    expect(isOpen).toBe(false);
    await world.clock.advance(200);
    expect([isOpen, client.condition.auth]).toEqual([true, 'secret-1']);
    await world.clock.advance(MINUTE_MS);
    isOpen = false;
    const errors: Error[] = [];
    client.on('error', (error: Error) => errors.push(error));
    void client.open().then(() => (isOpen = true));
    await world.clock.advance(10_000);
    expect(isOpen).toBe(false);
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('it has not answered for')]);
    expect(world.credentials.problem).toBe(errors[0]?.message);
    world.provide = () => ({ password: 'next' });
    await world.clock.advance(MINUTE_MS);
    expect([isOpen, client.condition.auth]).toEqual([true, 'next']);
  });

  it('that have expired when they come are not shown: the provider is called again, less and less often', async () => {
    const world = new World();
    world.provide = () => ({ password: 'old', expiresAt: world.in(-1) });
    const client = world.client();
    const errors: Error[] = [];
    client.on('error', (error: Error) => errors.push(error));
    void client.open();
    await world.clock.advance(MINUTE_MS);
    expect(client.condition.auth).toBeUndefined();
    expect(world.calls).toBeLessThan(10);
    const why = 'credentials() of the connection to Redis failed: it returned credentials that expired 0 s ago';
    expect(errors[0]?.message).toContain(why);
    expect(world.lines[0]).toContain(why);
    world.provide = () => ({ password: 'new', expiresAt: world.in(MINUTE_MS) });
    await world.clock.advance(MINUTE_MS / 2);
    expect(client.condition.auth).toBe('new');
    expect(world.credentials.problem).toBeUndefined();
  });

  it('are not waited for by a client that is closed, and leave no timer', async () => {
    const world = new World();
    const client = world.client();
    world.provide = () => new Promise(() => {});
    const opening = rejection(client.open());
    await settle();
    world.credentials.close();
    expect((await opening).message).toBe('Connection is closed.');
    await settle();
    expect(world.clock.timers).toBe(0);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'it returned no password'],
    ['an empty password', { password: '' }, 'it returned no password'],
    [
      'a username that is a number',
      { username: 1, password: 'hunter2' },
      'it returned a username that is not a string',
    ],
    ['an end that is no date', { password: 'hunter2', expiresAt: 'soon' }, 'neither a Date nor epoch milliseconds'],
    ['an end that is no valid date', { password: 'hunter2', expiresAt: new Date(NaN) }, 'neither a Date nor epoch'],
  ])('that are %s are refused, without their value', async (_, given, message) => {
    const world = new World();
    world.provide = () => given as RedisCredentials;
    const client = world.client();
    const errors: Error[] = [];
    client.on('error', (error: Error) => errors.push(error));
    client.open().catch(() => {});
    await settle();
    expect(errors[0]?.message).toContain(message);
    expect(errors[0]?.message).not.toContain('hunter2');
    world.credentials.close();
  });
});
