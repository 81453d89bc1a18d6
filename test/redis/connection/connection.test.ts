import { EventEmitter, once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { jest } from '@jest/globals';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import {
  locationOf,
  type RedisConnectionOption,
  startNodesOf,
  statedConnection,
} from '../../../lib/redis/connection/connection-options.js';
import { explainSentinel } from '../../../lib/redis/connection/connection-trouble.js';
import { reconnectPauses, safeOptions } from '../../../lib/redis/connection/ioredis-options.js';
import { mendQuirks } from '../../../lib/redis/connection/ioredis-quirks.js';
import { OwnClients } from '../../../lib/redis/connection/own-clients.js';
import { ServerConnection } from '../../../lib/redis/connection/server-connection.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

describe('options of a connection', () => {
  const closed: Cluster[] = [];
  const clusterOf = (...nodes: string[]): Cluster => {
    const cluster = new Cluster(nodes, { lazyConnect: true });
    closed.push(cluster);
    return cluster;
  };
  afterEach(() => closed.splice(0).forEach((cluster) => cluster.disconnect()));

  describe('the option connection', () => {
    it.each([
      ['a query with an @', 'redis://cache:6379/2?connectionName=svc@eu'],
      ['the name of a primary with an @', { sentinels: [{ host: 'a', port: 1 }], name: 'mymaster@eu' }],
      ['a password with an @', 'redis://:a%40b@cache:6379/2'],
    ])('may have %s', (_, connection) => {
      expect(() => statedConnection(connection).model).not.toThrow();
    });

    it.each(['redis://:hun/ter2@cache', 'redis://user:12/34@cache', 'redis://:hun?ter=2@cache'])(
      'is no URL whose password is not encoded: %s',
      (url) => {
        expect(() => statedConnection(url).model).toThrow('encodeURIComponent');
      },
    );

    it('is read once for a store', async () => {
      let reads = 0;
      const connection = {
        db: 3,
        get host() {
          reads++;
          return 'cache.test';
        },
      };
      const nameOf = { keyPrefix: 'lock', instanceId: 'a', leaseMs: 1_000 };
      const readBy = (action: () => unknown): number => {
        const before = reads;
        action();
        return reads - before;
      };
      const once = readBy(() => statedConnection(connection).model);
      let store!: RedisLockStore;
      expect(readBy(() => (store = new RedisLockStore({ connection, ...nameOf })))).toBe(once);
      expect([store.database, store.location]).toEqual([3, expect.stringContaining('cache.test')]);
      await store.close();
    });

    it('of a Cluster is shown without what may be a part of a password', () => {
      const nodes = ['redis://:hun/ter2@one:1', 'redis://user:12/34@two:2', 'redis://:x@three:3/0?a=b', '//four:4'];
      expect(startNodesOf(clusterOf(...nodes))).toEqual(['a node', 'a node', 'three:3', 'four:4']);
    });
  });

  describe('the location of the locks', () => {
    const place = (connection: RedisConnectionOption): string => locationOf(statedConnection(connection).model);

    it('is the same for each way to name a server', () => {
      const names = ['redis://one/2', 'redis://:secret@one:6379/2', { host: 'one', db: 2, password: 'other' }];
      expect(new Set(names.map(place)).size).toBe(1);
      expect(place(clusterOf('redis://one:1', 'redis://two:2'))).toBe(
        place({ cluster: ['redis://two:2', 'redis://one:1'] }),
      );
    });

    it('is another one on another server, in another database, and behind another prefix', () => {
      const sentinels = [{ host: 'one', port: 26_379 }];
      const names = [
        'redis://one/2',
        'redis://one/3',
        'redis://two/2',
        'redis://one:1/2',
        { host: 'one', db: 2, keyPrefix: 'stage:' },
        { sentinels, name: 'one' },
        { sentinels, name: 'two' },
        { cluster: ['redis://one:1'] },
        { cluster: ['redis://two:1'] },
        { cluster: ['redis://one:1'], keyPrefix: 'stage:' },
      ];
      expect(new Set(names.map(place)).size).toBe(names.length);
    });
  });
});

describe('why a sentinel did not name the primary', () => {
  it.each([
    [
      'failed to connect to sentinel 10.0.0.1:26379 because ERR No such master with that name',
      'the sentinel at 10.0.0.1:26379 knows no primary "locks"',
    ],
    [
      'connected to sentinel 10.0.0.1:26379 successfully, but got an invalid reply: null',
      'the sentinel at 10.0.0.1:26379 knows no primary "locks"',
    ],
    [
      'failed to connect to sentinel 10.0.0.1:26379 because NOAUTH Authentication required.',
      'failed to connect to sentinel 10.0.0.1:26379 because NOAUTH Authentication required. Set sentinelPassword, and ' +
        'sentinelUsername, in the connection option',
    ],
    [
      'failed to connect to sentinel 10.0.0.1:26379 because connect ECONNREFUSED 10.0.0.1:26379',
      'failed to connect to sentinel 10.0.0.1:26379 because connect ECONNREFUSED 10.0.0.1:26379',
    ],
  ])('%s', (message, explained) => {
    expect(explainSentinel(message, 'locks')).toBe(explained);
  });

  it.each([
    [undefined, 'Connection is closed'],
    ['connect ECONNREFUSED 10.0.0.1:26379', 'connect ECONNREFUSED 10.0.0.1:26379'],
    [
      'self-signed certificate. Set the CA certificate in the connection option: tls: { ca }',
      'self-signed certificate. Set the CA certificate in the connection option: sentinelTLS: { ca }',
    ],
    [
      'the server closes the connection at once. If the port expects TLS, use rediss:// or tls in the connection option',
      'the server closes the connection at once. If the port expects TLS, set sentinelTLS in the connection option',
    ],
  ])('a connection that is closed because of: %s', (reason, explained) => {
    const message = 'failed to connect to sentinel 10.0.0.1:26379 because Connection is closed.';
    const reasons = (address: string) => (address === '10.0.0.1:26379' ? reason : 'of another one');
    expect(explainSentinel(message, 'locks', reasons)).toBe(
      `failed to connect to sentinel 10.0.0.1:26379 because ${explained}`,
    );
  });
});

/** Time for which ioredis keeps the process alive after an attempt without a reply of any sentinel. */
const HELD_MS = 2_000;
const ATTEMPT_MS = 700;

/** A client of ioredis whose sentinels never answer, as it is while the process may exit: it gives up after each attempt. */
class Unanswered extends EventEmitter {
  readonly options = { sentinels: [{ host: '127.0.0.1', port: 1 }] };
  readonly status = 'end';
  /** When this client kept the process alive: from, to. */
  readonly held: (readonly [number, number])[] = [];

  connect(): Promise<void> {
    const from = Date.now();
    return new Promise((_, reject) => {
      setTimeout(() => {
        this.held.push([from, Date.now() + HELD_MS]);
        this.emit('end');
        reject(new Error('All sentinels are unreachable'));
      }, ATTEMPT_MS);
    });
  }
}

describe('clients of sentinels that do not answer, of a process that may exit', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('all rest at the same time, so that the process can exit: two instances, and two clients of each', async () => {
    const clients: Unanswered[] = [];
    for (let instance = 0; instance < 2; instance++) {
      const own = new OwnClients(30_000, true);
      for (let client = 0; client < 2; client++) {
        clients.push(own.add(new Unanswered() as unknown as Redis) as unknown as Unanswered);
        clients
          .at(-1)!
          .connect()
          .catch(() => {});
        await jest.advanceTimersByTimeAsync(650);
      }
    }
    await jest.advanceTimersByTimeAsync(60_000);

    const held = clients.flatMap((client) => client.held).toSorted(([one], [other]) => one - other);
    let until = held[0]![0];
    const gaps = held.filter(([from, to]) => {
      const isAfterAGap = from > until;
      until = Math.max(until, to);
      return isAfterAGap;
    });
    expect(gaps.length).toBeGreaterThan(5);
    // None has given up for good.
    for (const client of clients) expect(client.held.at(-1)![1]).toBeGreaterThan(Date.now() - 10_000);
  });
});

const CONNECTIONS = 2_000;
const LEASE_MS = 30_000;

describe('the pauses before a reconnect', () => {
  const random = new SeededRandom(1);
  beforeEach(() => {
    jest.spyOn(Math, 'random').mockImplementation(() => random.fraction());
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** The times at which each reaches a server that was down for `awayMs`. */
  const reconnects = (awayMs: number): number[] => {
    const pauseBefore = reconnectPauses(LEASE_MS);
    return Array.from({ length: CONNECTIONS }, () => {
      let at = 0;
      for (let attempt = 1; at < awayMs; attempt++) at += pauseBefore(attempt);
      return at;
    }).sort((a, b) => a - b);
  };
  const inBusiest = (times: readonly number[], windowMs: number): number => {
    const counts = times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length);
    return Math.max(...counts);
  };

  it.each([500, 1_000, 2_000, 5_000, 20_000])(
    'spread a fleet whose server was away for %i ms: at most a quarter in a tenth of a second',
    (awayMs) => {
      expect(inBusiest(reconnects(awayMs), 100)).toBeLessThan(CONNECTIONS / 4);
    },
  );

  it('are a few milliseconds at first, and never longer than a second or a third of a lease', () => {
    const longest = (leaseMs: number, attempt: number): number => {
      const pauseBefore = reconnectPauses(leaseMs);
      return Math.max(...Array.from({ length: 200 }, () => pauseBefore(attempt)));
    };
    expect(longest(LEASE_MS, 1)).toBeLessThanOrEqual(20);
    expect(longest(LEASE_MS, 100)).toBeLessThanOrEqual(1_000);
    expect(longest(600, 100)).toBeLessThanOrEqual(200);
  });
});

/** As ioredis makes the error of a reply. */
function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

describe('a connection that is never made', () => {
  const model = new Redis({ host: 'redis.test', port: 7000, password: 'pw', lazyConnect: true });
  const connection = new ServerConnection(model, safeOptions('one', 30_000));

  it('says where it would be', () => {
    expect(() => connection.ready()).toThrow('not connected to Redis at redis.test:7000');
  });

  it('reports why the connection broke if ioredis only reports that a command was not written', () => {
    const readonly = connection.explain(replyError("READONLY You can't write against a read only replica."));
    expect(readonly).toMatchObject({ failure: 'notExecuted', message: expect.stringMatching(/^READONLY.*primary$/) });
    const notWritten = connection.explain(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    expect(notWritten).toMatchObject({
      failure: 'notExecuted',
      message: `not connected to Redis at redis.test:7000 (${readonly.message})`,
    });
  });
});

it('a socket that fails again, after ioredis has handled its end, does not end the process', async () => {
  const server = createServer((socket) => socket.on('error', () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: null });
  mendQuirks(client);
  const errors: string[] = [];
  client.on('error', ({ message }: Error) => errors.push(message));
  client.connect().catch(() => {});
  await once(client, 'connect');
  // As a TLS socket does that was ended during its handshake: its certificate is refused, then it reads the server's alert.
  const ended = new Promise((resolve) => client.once('end', resolve));
  client.stream.destroy(new Error('self-signed certificate'));
  await ended;
  expect(client.stream.emit('error', new Error('tlsv1 alert decode error'))).toBe(true);
  expect(errors).toEqual(['self-signed certificate']);
  server.close();
});

it('data read by a socket is passed on before anything else runs', async () => {
  const server = createServer((socket) => {
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const _ of text.matchAll(/ping/gi)) socket.write('+PONG\r\n');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const options = { retryStrategy: null, enableReadyCheck: false, disableClientInfo: true };
  const client = new Redis({ port, host: '127.0.0.1', protocol: 2, lazyConnect: true, ...options } as RedisOptions);
  mendQuirks(client);
  await client.connect();
  await client.ping();
  const { stream } = client;
  let isReading = false;
  const push = stream.push.bind(stream);
  stream.push = (...read) => {
    isReading = true;
    try {
      return push(...read);
    } finally {
      isReading = false;
    }
  };
  const heard: boolean[] = [];
  stream.prependListener('data', () => heard.push(isReading));
  await client.ping();
  expect(heard).toEqual([true]);
  client.disconnect();
  server.close();
});

describe('a connection without replies', () => {
  /** A client of a server that answers as the test says. */
  async function connectTo(answer: (socket: Socket, text: string) => void, socketTimeout: number): Promise<Redis> {
    const server = createServer((socket) => {
      socket.setEncoding('utf8').on('error', () => {});
      socket.on('data', (text: string) => answer(socket, text));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const options = { socketTimeout, retryStrategy: null, enableReadyCheck: false, disableClientInfo: true };
    const client = new Redis({ port, host: '127.0.0.1', protocol: 2, lazyConnect: true, ...options } as RedisOptions);
    mendQuirks(client);
    client.on('error', () => {}).on('end', () => server.close());
    await client.connect();
    return client;
  }

  const answerAll = (socket: Socket, text: string): void => {
    for (const _ of text.matchAll(/ping/gi)) socket.write('+PONG\r\n');
  };

  it('is given up, and not before its time', async () => {
    const client = await connectTo(() => {}, 200);
    const errors: string[] = [];
    client.on('error', ({ message }: Error) => errors.push(message));
    const sentAt = performance.now();
    await expect(client.ping()).rejects.toThrow('Connection is closed.');
    // Timers count in whole milliseconds.
    expect(performance.now() - sentAt).toBeGreaterThan(195);
    expect(errors).toEqual(["Socket timeout. Expecting data, but didn't receive any in 200ms."]);
  });

  it('is not given up while something arrives from time to time, or while it has nothing to answer', async () => {
    let isSlow = true;
    const client = await connectTo((socket, text) => {
      if (!isSlow) return answerAll(socket, text);
      // Bit by bit, so that the command is open for much longer than a connection may be silent.
      const bits = '+PONG\r\n'.split('');
      const timer = setInterval(() => {
        socket.write(bits.shift()!);
        if (bits.length === 0) clearInterval(timer);
      }, 100);
    }, 400);
    await expect(client.ping()).resolves.toBe('PONG');
    isSlow = false;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await expect(client.ping()).resolves.toBe('PONG');
    client.disconnect();
  });

  it('is looked for with few timers, however many commands are answered', async () => {
    const client = await connectTo(answerAll, 60_000);
    await client.ping();
    const timers = [jest.spyOn(globalThis, 'setTimeout'), jest.spyOn(globalThis, 'setInterval')];
    for (let commands = 0; commands < 50; commands++) await client.ping();
    expect(timers.flatMap(({ mock }) => mock.calls)).toHaveLength(0);
    jest.restoreAllMocks();
    client.disconnect();
  });
});
