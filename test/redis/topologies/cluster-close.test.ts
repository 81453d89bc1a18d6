import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { ClusterTopology } from '../../../lib/redis/topology/cluster-topology.js';
import { OwnClients } from '../../../lib/redis/connection/own-clients.js';
import { eventually } from '../../support/expect/eventually.js';

/** How long a node may take to say where the slots are. */
const ANSWER_MS = 1_000;

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

  it('keeps nobody waiting who closes the application', async () => {
    const { port } = server.address() as AddressInfo;
    const model = new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true });
    const topology = new ClusterTopology(model, new OwnClients(10_000), () => {});
    topology.connect();
    const [socket] = (await once(server, 'connection')) as [Socket];
    const givesUp = sleep(0.8 * ANSWER_MS, 'only when no answer came');
    await once(socket, 'data');
    const ends = once(socket, 'close').then(() => 'at once');
    topology.close();
    expect(await Promise.race([ends, givesUp])).toBe('at once');
    model.disconnect();
  });

  it('nor does one that is gone', async () => {
    const { port } = server.address() as AddressInfo;
    server.close();
    const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const model = new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true });
    const topology = new ClusterTopology(model, new OwnClients(10_000), () => {});
    topology.connect();
    await eventually(() => expect(topology.lastError).toBeDefined());
    topology.close();
    // Without a limit ioredis waits for two seconds until a connection has closed, also for one that was never there.
    await eventually(() => expect(timers()).toBeLessThanOrEqual(before), 1_500);
    model.disconnect();
  });
});
