import { ours } from '../ratios.mjs';
import { roundsOfOurs } from '../solo.mjs';
import { costOfWaiting, METRICS } from './waiting.mjs';

const RESOURCES = 5_000;
const FOR_MS = 30_000;
const ROUNDS = 3;

export const scenario = {
  name: 'waiting-calls',
  title: '5,000 calls that wait',
  meaning: 'What an instance costs while its calls wait for locks that another process holds.',
  how:
    'One process waits for 5,000 resources, with leases of 30 s. Another one holds them, and sends nothing meanwhile. Scripts are ' +
    'counted in the client, by their names: those that keep places, and the probes of the inbox. CPU is `used_cpu_user` and ' +
    '`used_cpu_sys` of Redis, and `process.cpuUsage()` of the process that waits, over 30 s.',
  metrics: METRICS,
  chart: { metric: 'scripts', unit: 'scripts a second', limit: 20 },
  targets: [
    { text: 'scripts', of: ours('scripts'), atMost: 20, unit: '/s' },
    { text: 'CPU of Redis', of: ours('redisPercent'), atMost: 1.5, unit: ' %' },
    { text: 'CPU of the client', of: ours('ownPercent'), atMost: 1.5, unit: ' %' },
  ],
  async run(bench) {
    const resources = bench.count(RESOURCES, 200);
    const measure = () =>
      costOfWaiting(bench, {
        processes: 2,
        holders: 1,
        async prepare([holder, waiter], ask) {
          const names = { resources, prefix: bench.resource('waiting-calls') };
          await ask({ step: 'start', instances: 1 });
          await holder.ask('waits', { step: 'hold', ...names });
          await waiter.ask('waits', { step: 'wait', ...names });
        },
        settleMs: bench.ms(15_000),
        forMs: bench.ms(FOR_MS),
      });
    return { rounds: await roundsOfOurs(bench, 'waiting-calls', measure, { rounds: Math.min(bench.rounds, ROUNDS) }) };
  },
};
