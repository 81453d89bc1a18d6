import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Cluster } from 'ioredis';
import { ClusterTopology } from '../../../lib/redis/topology/cluster-topology.js';
import { OwnClients } from '../../../lib/redis/connection/own-clients.js';
import { eventually } from '../../support/expect/eventually.js';
import { OwnTimers } from '../../support/expect/own-timers.js';

/** Default time that ioredis waits for a connection to end with a pending command. */
const DEFAULT_GONE_MS = 2_000;

describe('a cluster whose nodes hang', () => {
  let server: Server;
  const sockets: Socket[] = [];

  beforeEach(async () => {
    server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.close();
  });

  it('does not delay the end of the application', async () => {
    const { port } = server.address() as AddressInfo;
    const model = new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true });
    // Keeps its commands pending, so that only the call can end the connection.
    const duplicate = model.duplicate.bind(model);
    model.duplicate = (nodes, options) => duplicate(nodes, { ...options, slotsRefreshTimeout: 300_000 });
    const topology = new ClusterTopology(model, new OwnClients(10_000), () => {});
    topology.connect();
    const [socket] = (await once(server, 'connection')) as [Socket];
    await once(socket, 'data');
    topology.close();
    await eventually(() => expect(socket.closed).toBe(true));
    model.disconnect();
  });

  it('nor does one that is gone', async () => {
    const { port } = server.address() as AddressInfo;
    server.close();
    using timers = new OwnTimers();
    const model = new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true });
    const topology = new ClusterTopology(model, new OwnClients(10_000), () => {});
    topology.connect();
    await eventually(() => expect(topology.lastError).toBeDefined());
    topology.close();
    model.disconnect();
    const waits = timers.made.map(({ ms }) => ms);
    expect(waits).not.toEqual([]);
    expect(waits).not.toContain(DEFAULT_GONE_MS);
  });
});
