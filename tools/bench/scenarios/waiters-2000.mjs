import { ours } from './ratios.mjs';
import { inProcessOfOurs, roundsOfOurs } from './solo.mjs';

const WAITERS = 2_000;
const ROUNDS = 3;

export const scenario = {
  name: 'waiters-2000',
  title: '2,000 waiters in one process',
  how:
    'One process holds a resource, 2,000 callers wait for it, then it is released; each releases as soon as it has its lease. Out of ' +
    'order is how many were served after one that came later. Heap and timers are compared with those before the rush, after a garbage ' +
    'collection; two rushes that are not counted warm up. Three rounds.',
  metrics: [
    { id: 'servedMs', label: 'all served in, ms', digits: 0 },
    { id: 'outOfOrder', label: 'out of order', digits: 0 },
    { id: 'heapWaitingBytes', label: 'heap for a waiter, bytes', digits: 0 },
    { id: 'heapLeftKb', label: 'heap left behind, KB', digits: 0 },
    { id: 'timersLeft', label: 'timers left behind', digits: 0 },
    { id: 'listenersLeft', label: 'listeners left behind', digits: 0 },
  ],
  targets: [
    { text: 'served out of order', of: ours('outOfOrder'), atMost: 0, unit: '' },
    { text: 'heap left behind', of: ours('heapLeftKb'), atMost: 256, unit: ' KB' },
    { text: 'timers left behind', of: ours('timersLeft'), atMost: 0, unit: '' },
    { text: 'listeners left behind', of: ours('listenersLeft'), atMost: 0, unit: '' },
  ],
  async run(bench) {
    const args = { waiters: bench.count(WAITERS, 200) };
    return {
      rounds: await roundsOfOurs(bench, 'waiters-2000', () => inProcessOfOurs(bench, 'rush', args), {
        rounds: Math.min(bench.rounds, ROUNDS),
      }),
    };
  },
};
