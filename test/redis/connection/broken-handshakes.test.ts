import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { safeOptions } from '../../../lib/redis/connection/ioredis-options.js';
import { ServerConnection } from '../../../lib/redis/connection/server-connection.js';
import { eventually } from '../../support/expect/eventually.js';

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
