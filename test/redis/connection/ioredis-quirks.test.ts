import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { jest } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { mendQuirks } from '../../../lib/redis/connection/ioredis-quirks.js';

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
