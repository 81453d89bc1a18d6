import { OURS } from '../../contestants/index.mjs';
import { handOvers } from '../handover.mjs';
import { atEachDistance, DISTANCES, idAt, roundsAtEachDistance } from './distances.mjs';

const HAND_OVERS = 20;
const WARM_UPS = 20;

export const scenario = {
  name: 'network-handover',
  group: 'network',
  title: 'From one process to the next, over a network',
  how:
    'As [on one machine](../benchmarks.md#from-one-process-to-the-next), 20 times in a round. Delays as above. The shortest that is possible ' +
    'is one round trip: the release to Redis, and the message from there to the process that waits.',
  metrics: atEachDistance([
    { id: 'p50Ms', label: 'p50, ms', digits: 2 },
    { id: 'pingP50Ms', label: 'PING p50, ms', digits: 2 },
  ]),
  targets: DISTANCES.map(({ id, label }) => ({
    text: `hand-over p50, of the PING p50, ${label}`,
    of: (values) => values[OURS]?.[idAt(id, 'p50Ms')] / values[OURS]?.[idAt(id, 'pingP50Ms')],
    atMost: id === 'far' ? 1.1 : 1.5,
  })),
  async run(bench) {
    const everyone = bench.contestants('ours', 'peer');
    return {
      rounds: await roundsAtEachDistance(bench, async (there) => {
        for (const one of everyone) {
          await there.attempt('network-handover', one, () => handOvers(there, one, there.count(WARM_UPS, 3), 0));
        }
        return there.eachRound('network-handover', everyone, async (one) => {
          const { p50Us, pingP50Us } = await handOvers(there, one, there.count(HAND_OVERS, 5));
          return { p50Ms: p50Us / 1000, pingP50Ms: pingP50Us / 1000 };
        });
      }),
    };
  },
};
