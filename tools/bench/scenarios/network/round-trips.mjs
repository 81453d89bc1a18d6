import { OURS } from '../../contestants/index.mjs';
import { median } from '../../measure/statistics.mjs';
import { Network } from '../../network/network.mjs';
import { WorkerProcess } from '../../processes/worker-process.mjs';
import { measureOperation } from './one-operation.mjs';
import { TOPOLOGIES } from './topologies.mjs';

const DELAY_MS = 5;
const SAMPLES = 5;
const ROUNDS = 3;
/** A start of many connections, each some round trips away. */
const PATIENCE = { timeoutMs: 60_000 };

const counted = (operation, topology = 'single') => ({
  text: `${operation}, ${TOPOLOGIES[topology].label}, counted`,
  of: (values) => values[operation]?.[`${topology}Count`],
  atMost: 1,
  unit: '',
});

export const scenario = {
  name: 'round-trips',
  group: 'network',
  title: 'Round trips of each operation',
  how:
    `Every connection goes through a proxy that delays each byte by ${DELAY_MS} ms each way. The first four columns are times in ` +
    `multiples of a \`PING\` that goes the same way, measured in between. The last four are counted by the proxies, whatever ` +
    'the time: what a process or a server sends comes half a round trip after all that it has received. Medians of ' +
    `${SAMPLES} calls in a round. The cluster has three primaries, which are not delayed among each other. The quorum has five servers. With ` +
    '`durability: { replicas: 1 }` the replica is as far from the primary as the processes are.',
  metrics: [
    ...Object.entries(TOPOLOGIES).map(([id, { label }]) => ({ id, label, digits: 2 })),
    ...Object.entries(TOPOLOGIES).map(([id, { label }]) => ({
      id: `${id}Count`,
      label: `${label}, counted`,
      digits: 1,
    })),
  ],
  targets: [
    counted('a lock: acquire'),
    counted('a lock: release'),
    counted('the method with `backgroundRelease`'),
    counted('5 resources: acquire'),
    counted('5 resources: release'),
    counted('a hand-over to another process'),
    counted('a tick of a cron job: claim'),
    counted('elected after another process resigned'),
  ],
  async run(bench) {
    const rounds = [];
    const count = Math.min(bench.rounds, ROUNDS);
    while (rounds.length < count) {
      const values = {};
      for (const id of Object.keys(TOPOLOGIES)) {
        for (const [name, measured] of Object.entries(await topologyOf(bench, id)))
          values[name] = { ...values[name], ...measured };
      }
      rounds.push({ order: Object.keys(values), values });
      bench.say(`  round ${rounds.length} of ${count}`);
    }
    return { rounds };
  },
};

/** @returns {Promise<Record<string, Record<string, number>>>} for each operation that there is on this topology */
async function topologyOf(bench, id) {
  const network = new Network({ delayMs: DELAY_MS });
  const topology = await TOPOLOGIES[id].start(network, bench.url);
  const workers = [];
  try {
    const processes = [];
    for (const name of ['first', 'second']) {
      const { url, tuning } = await topology.reach(name);
      const worker = new WorkerProcess({ contestant: OURS, url });
      workers.push(worker);
      processes.push((args) => worker.ask('operation', { tuning, ...args }, PATIENCE));
    }
    return await operationsOf(bench, id, network, processes);
  } finally {
    for (const worker of workers) worker.kill();
    await Promise.all(workers.map(({ exited }) => exited));
    network.stop();
    await topology.stop();
  }
}

async function operationsOf(bench, id, network, processes) {
  const [first] = processes;
  const { lacks = () => false, warmUps = 1 } = TOPOLOGIES[id];
  const pings = [];
  const measured = {};
  for (const operation of (await first({ step: 'names' })).filter(({ name }) => !lacks(name))) {
    const sample = () => measureOperation(network, processes, operation, bench.resource('round-trips'));
    const measure = async () => {
      const samples = [];
      for (let index = 0; index < warmUps; index++) await sample();
      // Without a pause: a release that goes on in the background is not over when the next call comes.
      for (let index = 0; index < bench.count(SAMPLES, 3); index++) samples.push(await sample());
      for (let index = 0; index < samples.length; index++) {
        const { startedAt, endedAt } = await first({ step: 'ping' });
        pings.push(endedAt - startedAt);
      }
      return { tookNs: median(samples.map(({ tookNs }) => tookNs)), trips: median(samples.map(({ trips }) => trips)) };
    };
    measured[operation.name] = await bench.attempt(`round-trips on ${id}`, ours(operation.name), measure);
  }
  const pingNs = median(pings);
  return Object.fromEntries(
    Object.entries(measured).map(([name, { failed, tookNs, trips }]) => [
      name,
      failed === undefined ? { [id]: tookNs / pingNs, [`${id}Count`]: trips } : { failed: `on ${id}: ${failed}` },
    ]),
  );
}

const ours = (label) => ({ name: OURS, label });
