import { toContestant, toMostOfPeers } from './ratios.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

export const scenario = {
  name: 'uncontended-1',
  title: 'A free lock, one caller after the other',
  how:
    'One process, one caller, one resource that no other caller uses; acquire, release, and again. For `PING` an operation is one ' +
    'round trip, for the others acquire and release. In each round each contestant has five slices of 200 ms, side by side. Our lease ' +
    'carries a fencing token and is renewed; the raw pair has neither. `raw with a fencing token` has the token too: the same guarantee as ' +
    'ours, without the queue. The two calls below ours are `acquire` without options, and `using`. Processor time, the time of commands ' +
    'in Redis (`INFO commandstats`; only if it is known who sent them) and bytes are for each lease. `Redis CPU` is all that the ' +
    'server uses meanwhile, with its network.',
  metrics: throughputMetrics,
  compare: ['leasesPerSecond', 'cpuUs', 'redisUs', 'bytes'],
  targets: [
    { text: 'leases/s, of the raw pair', of: toContestant('raw', 'leasesPerSecond'), atLeast: 0.92 },
    {
      text: 'leases/s, of the raw pair with a token',
      of: toContestant('raw-fenced', 'leasesPerSecond'),
      atLeast: 0.97,
    },
    { text: 'leases/s, of the best peer', of: toMostOfPeers('leasesPerSecond'), atLeast: 1 },
    // Two scripts that do nothing, with three declared keys each, take as long in Redis as the raw pair.
    { text: 'commands in Redis, of the raw pair', of: toContestant('raw', 'redisUs'), atMost: 3.7 },
    { text: 'client CPU, of the raw pair', of: toContestant('raw', 'cpuUs'), atMost: 1.25 },
    { text: 'bytes to Redis, of the raw pair', of: toContestant('raw', 'bytes'), atMost: 1.7 },
    { text: 'leases/s, of redis-semaphore', of: toContestant('redis-semaphore', 'leasesPerSecond'), atLeast: 1 },
  ],
  run: (bench) => runThroughput(bench, 'uncontended-1', { callers: 1 }),
};
