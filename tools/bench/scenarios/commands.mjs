import { OURS } from '../contestants/index.mjs';
import { nowNs, untilNs } from '../measure/clock.mjs';
import { concat } from '../measure/exclusion.mjs';
import { CountingProxy } from '../network/counting-proxy.mjs';
import { WorkerProcess } from '../processes/worker-process.mjs';

const CASES = [
  { id: 'waiters1', label: '1 caller', processes: 1, callers: 1 },
  { id: 'waiters32', label: '32 callers', processes: 1, callers: 32 },
  { id: 'waiters1000', label: '1,000 callers', processes: 1, callers: 1_000 },
  { id: 'waiters8x4', label: '32 in 8 processes', processes: 8, callers: 4 },
];
const SETTLE_MS = 250;
const WINDOW_MS = 600;
const ROUNDS = 3;

export const scenario = {
  name: 'commands',
  title: 'Commands to Redis for each lease',
  how:
    `Callers want one resource, with nothing to do under it; three rounds. The commands are counted on the wire, by a proxy before Redis that ` +
    'sees what clients send: scripts count as one, SUBSCRIBE and heartbeats count too. (`INFO commandstats` would count what scripts ' +
    'call as well, and `CLIENT LIST` has no count of commands in Redis 7.) Settings as chosen for `contended-empty`.',
  metrics: CASES.map(({ id, label }) => ({ id, label, digits: 2 })),
  targets: CASES.map(({ id, label }) => ({
    text: `commands for a lease, ${label}`,
    of: (values) => values[OURS]?.[id],
    // Two for the lease, and a little for heartbeats.
    atMost: 2.05,
    unit: '',
  })),
  async run(bench) {
    const measure = async (one) => {
      const values = {};
      for (const each of CASES.slice(0, bench.count(CASES.length, 2)))
        values[each.id] = await commandsPerLease(bench, one, each);
      return values;
    };
    const rounds = await bench.eachRound('commands', bench.contestants('ours', 'peer'), measure, {
      rounds: Math.min(bench.rounds, ROUNDS),
    });
    return { rounds };
  },
};

async function commandsPerLease(bench, one, { processes, callers }) {
  const proxy = new CountingProxy();
  const url = await proxy.start(bench.url);
  const workers = Array.from({ length: processes }, () => new WorkerProcess({ contestant: one.name, url }));
  try {
    const tuning = bench.tuningOf('contended-empty', one);
    const resource = bench.resource('commands');
    await Promise.all(workers.map((worker) => worker.ask('step', { step: 'ping', resource, tuning })));
    const startNs = nowNs() + 60e6;
    const [fromNs, toNs] = [startNs + SETTLE_MS * 1e6, startNs + (SETTLE_MS + bench.ms(WINDOW_MS)) * 1e6];
    const ms = (toNs - startNs) / 1e6;
    const args = { resource, callers, startNs, ms, drainMs: 0, sectionMs: 0, tuning };
    const asked = Promise.all(workers.map((worker) => worker.ask('contend', args)));
    asked.catch(() => undefined); // awaited below
    await untilNs(fromNs);
    const before = proxy.commands;
    await untilNs(toNs);
    const commands = proxy.commands - before;
    const left = concat((await asked).map((result) => result.left));
    const leases = left.filter((at) => at >= fromNs && at < toNs).length;
    if (leases === 0)
      throw new Error(`no lease within ${bench.ms(WINDOW_MS)} ms (${callers} callers, ${processes} processes)`);
    return commands / leases;
  } finally {
    for (const worker of workers) worker.kill();
    await Promise.all(workers.map(({ exited }) => exited));
    proxy.stop();
  }
}
