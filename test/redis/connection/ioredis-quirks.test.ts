import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Redis } from 'ioredis';
import { mendQuirks } from '../../../lib/redis/connection/ioredis-quirks.js';

it('a socket that fails once more, after ioredis has heard of its end, does not end the process', async () => {
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
