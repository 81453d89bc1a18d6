import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { mendQuirks } from '../../../lib/redis/connection/ioredis-quirks.js';
import { eventually } from '../../support/expect/eventually.js';

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
