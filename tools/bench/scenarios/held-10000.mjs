import { ours } from './ratios.mjs';
import { inProcessOfOurs, roundsOfOurs } from './solo.mjs';

const LEASES = 10_000;
const HOLD_MS = 26_000;
const ROUNDS = 1;

export const scenario = {
  name: 'held-10000',
  title: '10,000 leases held',
  how:
    'One process holds 10,000 leases of 30 s with the watchdog on for 26 s, in which each is renewed twice; one round. CPU is the ' +
    'processor time of the process in that time, heap is what `heapUsed` grows by after a garbage collection. Lost is how many are ' +
    'no longer held by the clock of the process, or by Redis, which is asked about each one at the end. "Time left" is the ' +
    'shortest at the end: with one renewal only it would be 14 s.',
  metrics: [
    { id: 'cpuPercent', label: 'CPU, % of a core', digits: 1 },
    { id: 'heapPerLeaseBytes', label: 'heap for a lease, bytes', digits: 0 },
    { id: 'lost', label: 'lost', digits: 0 },
    { id: 'shortestLeftMs', label: 'time left, ms', digits: 0 },
  ],
  targets: [
    { text: 'CPU', of: ours('cpuPercent'), atMost: 10, unit: ' %' },
    { text: 'heap for a lease', of: ours('heapPerLeaseBytes'), atMost: 1_000, unit: ' bytes' },
    { text: 'leases lost', of: ours('lost'), atMost: 0, unit: '' },
  ],
  async run(bench) {
    const args = { leases: bench.count(LEASES, 500), holdMs: bench.ms(HOLD_MS) };
    const measure = () => inProcessOfOurs(bench, 'hold', args, { timeoutMs: args.holdMs + 60_000 });
    return { rounds: await roundsOfOurs(bench, 'held-10000', measure, { rounds: Math.min(bench.rounds, ROUNDS) }) };
  },
};
