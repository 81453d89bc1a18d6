import { setTimeout as sleep } from 'node:timers/promises';
import { contestants, OURS } from '../contestants/index.mjs';
import { startSentinels } from '../processes/sentinels.mjs';
import { WorkerProcess } from '../processes/worker-process.mjs';
import { roundsOfOurs, spreadSeries } from './solo.mjs';

const ROUNDS = 5;
const LEASES = 50;
const PATIENCE = { timeoutMs: 120_000 };
/** Beside the defaults: longer waits than leases, as those are, and shorter ones. */
const LENGTHS = [
  { leaseMs: 10_000, waitMs: 12_000 },
  { leaseMs: 15_000, waitMs: 18_000 },
  { leaseMs: 30_000, waitMs: 10_000 },
];

const rowOf = ({ leaseMs, waitMs }) => `leases of ${leaseMs / 1_000} s, waits of ${waitMs / 1_000} s`;

export const scenario = {
  name: 'outages',
  title: 'A holder is killed, an event loop is blocked, a primary dies',
  how:
    'Everybody has the defaults of their package (redlock has none for a lease: 5 s, as in its README). "Killed": the process that holds ' +
    'a lock gets SIGKILL within a second after the grant, and another process calls for the lock from then on, every 250 ms for 40 s: how ' +
    `many of these 160 calls fail, and when the first one succeeds. "Blocked": a process with ${LEASES} leases, which began within 10 s, ` +
    'stands still for 8 s: how many are lost. "Fail-over": the primary behind three sentinels (down-after 5 s) gets SIGKILL: the same.',
  metrics: [
    { id: 'failedCalls', label: 'killed: calls failed', digits: 0 },
    { id: 'outageS', label: 'outage, s', digits: 1 },
    { id: 'lostBlocked', label: 'blocked: lost, %', digits: 0 },
    { id: 'lostFailOver', label: 'fail-over: lost, %', digits: 0 },
  ],
  targets: [
    { text: 'calls failed', of: (values) => values[OURS]?.failedCalls, atMost: 0, unit: '' },
    { text: 'leases lost, blocked for 8 s', of: (values) => values[OURS]?.lostBlocked, atMost: 0, unit: ' %' },
    { text: 'leases lost, fail-over', of: (values) => values[OURS]?.lostFailOver, atMost: 0, unit: ' %' },
  ],
  async run(bench) {
    const everyone = contestants('ours', 'peer').map(({ name }) => ({ row: name, contestant: name, tuning: {} }));
    const ours = [{ row: OURS, tuning: {} }, ...LENGTHS.map((tuning) => ({ row: rowOf(tuning), tuning }))];
    const measure = async () => {
      const sentinels = await startSentinels();
      const block = (workers) => together(workers, { step: 'block', ms: 8_000 });
      const failOver = async () => {
        await sentinels.killPrimary();
        await sleep(20_000);
      };
      try {
        const values = {};
        const add = (row, metrics) => (values[row] = { ...values[row], ...metrics });
        const kill = async (one) => {
          const { row, contestant = OURS } = one;
          const named = { name: row, label: row, fleet: contestant };
          add(row, await bench.attempt('outages', named, () => killed(bench, one)));
        };
        await Promise.all([
          ...[...everyone, ...ours.slice(1)].map(kill),
          lost(bench, ours, { add, metric: 'lostBlocked', fault: block }),
          lost(bench, ours, { add, metric: 'lostFailOver', fault: failOver, connection: sentinels.connection }),
        ]);
        return values;
      } finally {
        await sentinels.stop();
      }
    };
    const rounds = Math.min(bench.rounds, ROUNDS);
    return { rounds: spreadSeries(await roundsOfOurs(bench, 'outages', measure, { rounds })) };
  },
};

/** One holder that is killed, and a process that calls for its lock from then on. */
async function killed(bench, { row, contestant = OURS, tuning }) {
  const resource = bench.resource(`killed ${row}`);
  const [holder, caller] = [0, 1].map(() => new WorkerProcess({ contestant, url: bench.url }));
  const args = { resource, tuning: { ...tuning, asShipped: true } };
  try {
    await caller.ask('outages', { step: 'connect', ...args }, PATIENCE);
    await holder.ask('outages', { step: 'acquire', ...args }, PATIENCE);
    await sleep(Math.random() * 1_000);
    holder.kill();
    await holder.exited;
    return await caller.ask('outages', { step: 'call', ...args, everyMs: 250, forMs: bench.ms(40_000) }, PATIENCE);
  } finally {
    for (const worker of [holder, caller]) worker.kill();
  }
}

/** Counts the leases that are lost by a fault while all of these processes hold theirs. */
async function lost(bench, rows, { add, metric, fault, connection = bench.url }) {
  const workers = rows.map(() => new WorkerProcess({ contestant: OURS, url: bench.url }));
  const hold = ({ row, tuning }, index) => {
    const args = { resource: bench.resource(`${metric} ${row}`), tuning: { ...tuning, connection } };
    return workers[index].ask('outages', { step: 'hold', ...args, leases: LEASES, withinMs: 10_000 }, PATIENCE);
  };
  try {
    await Promise.all(rows.map(hold));
    await fault(workers);
    const counts = await together(workers, { step: 'countLost' });
    for (const [index, { row }] of rows.entries()) add(row, { [metric]: counts[index] * (100 / LEASES) });
  } finally {
    for (const worker of workers) worker.kill();
  }
}

function together(workers, args) {
  return Promise.all(workers.map((worker) => worker.ask('outages', args, PATIENCE)));
}
