import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { OwnClients } from '../../../lib/redis/connection/own-clients.js';
import { ClusterServers } from '../../../lib/redis/topology/cluster-servers.js';
import type { ClusterTopology } from '../../../lib/redis/topology/cluster-topology.js';

describe('connections to the nodes of a cluster', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('stay open for 30 s after a node has lost its slots, or was last needed', async () => {
    let nodes = [1, 2].map((port) => new Redis({ host: '127.0.0.1', port, lazyConnect: true }));
    const topology = { nodes: () => nodes, refresh: () => {} } as unknown as ClusterTopology;
    const clients = new OwnClients(10_000);
    const servers = new ClusterServers(topology, { lazyConnect: true }, clients);
    servers.follow();
    const retired = servers.known('127.0.0.1:2')!;
    const close = jest.spyOn(retired, 'close');
    nodes = nodes.slice(0, 1);
    servers.follow();
    expect(servers.primaries).toEqual([servers.known('127.0.0.1:1')]);
    jest.advanceTimersByTime(20_000);
    expect(servers.at('127.0.0.1:2')).toBe(retired);
    jest.advanceTimersByTime(20_000);
    expect(close).not.toHaveBeenCalled();
    jest.advanceTimersByTime(20_000);
    expect(close).toHaveBeenCalledTimes(1);
    expect(servers.known('127.0.0.1:2')).toBeUndefined();
    servers.close();
    jest.useRealTimers();
    await clients.closed();
  });
});
