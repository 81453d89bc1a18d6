import { toContestant, toMostOfPeers } from '../ratios.mjs';
import { runThroughput } from '../throughput.mjs';
import { atEachDistance, DISTANCES, idAt, roundsAtEachDistance } from './distances.mjs';

const IN_BACKGROUND = 'ours-background';

const eachDistance = (text, of, limit) =>
  DISTANCES.map(({ id, label }) => ({ text: `${text}, ${label}`, of: of(id), ...limit }));

export const scenario = {
  name: 'network-1',
  group: 'network',
  title: 'A free lock over a network, one caller after the other',
  how:
    'As [on one machine](../benchmarks.md#a-free-lock-one-caller-after-the-other), but every connection goes through a proxy that delays each ' +
    'byte, by 5 ms and then by 0.5 ms each way.',
  metrics: atEachDistance([
    { id: 'p50Ms', label: 'p50, ms', digits: 2 },
    { id: 'leasesPerSecond', label: 'leases/s', digits: 0 },
  ]),
  targets: [
    ...eachDistance('leases/s, of the raw pair', (id) => toContestant('raw', idAt(id, 'leasesPerSecond')), {
      atLeast: 0.97,
    }),
    ...eachDistance(
      'leases/s, of the raw pair with a token',
      (id) => toContestant('raw-fenced', idAt(id, 'leasesPerSecond')),
      { atLeast: 0.97 },
    ),
    ...eachDistance('leases/s, of the best peer', (id) => toMostOfPeers(idAt(id, 'leasesPerSecond')), {
      atLeast: 0.97,
    }),
    {
      text: 'with backgroundRelease: p50, of a PING, 5 ms',
      of: (values) => values[IN_BACKGROUND]?.farP50Ms / values.ping?.farP50Ms,
      atMost: 1.2,
    },
  ],
  async run(bench) {
    return {
      rounds: await roundsAtEachDistance(bench, async (there) => {
        const { rounds } = await runThroughput(there, 'network-1', { callers: 1 });
        return rounds.map(({ order, values }) => ({
          order,
          values: Object.fromEntries(Object.entries(values).map(([name, result]) => [name, inMs(result)])),
        }));
      }),
    };
  },
};

function inMs({ failed, p50Us, leasesPerSecond }) {
  return failed === undefined ? { p50Ms: p50Us / 1000, leasesPerSecond } : { failed };
}
