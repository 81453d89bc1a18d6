import { OURS } from '../contestants/index.mjs';
import { WorkerProcess } from '../processes/worker-process.mjs';
import { ours } from './ratios.mjs';
import { roundsOfOurs } from './solo.mjs';

const PROCESSES = 4;
const INSTANCES = 1_000;
const JOBS = 20;
const LISTED = 1_000;
const ROUNDS = 3;
/** Until the next tick that all processes have heard of. */
const AHEAD_MS = 1_500;
const PATIENCE = { timeoutMs: 120_000 };

export const scenario = {
  name: 'fleet-of-crons',
  title: 'A fleet of 1,000 instances with 20 cron jobs',
  how:
    '1,000 instances, 250 in each of 4 processes, have 20 jobs whose tick is due at the same moment. Each has connections of its own ' +
    'and claims all 20: 20,000 claims, as `@SingletonCron` sends them, and 20 ends of runs. A tick before that one warms up. CPU is ' +
    '`used_cpu_user` and `used_cpu_sys` of Redis, scripts the EVALSHA commands in its `commandstats`. The processes share the machine ' +
    'with Redis, so that the time until all are answered is mostly theirs. Then one instance lists 1,000 jobs with a run each, 20 times.',
  metrics: [
    { id: 'cpuMs', label: 'CPU of Redis, ms', digits: 0 },
    { id: 'cpuPerClaimUs', label: 'for a claim, µs', digits: 1 },
    { id: 'scripts', label: 'scripts', digits: 0 },
    { id: 'unanswered', label: 'unanswered claims', digits: 0 },
    { id: 'wrongRuns', label: 'runs too many or too few', digits: 0 },
    { id: 'answeredMs', label: 'all answered in, ms', digits: 0 },
    { id: 'listMs', label: 'list(), ms', digits: 1 },
    { id: 'listCpuMs', label: 'CPU of Redis for it, ms', digits: 1 },
    { id: 'listOwnCpuMs', label: 'of its process, ms', digits: 1 },
  ],
  targets: [
    { text: 'unanswered claims', of: ours('unanswered'), atMost: 0, unit: '' },
    { text: 'runs too many or too few', of: ours('wrongRuns'), atMost: 0, unit: '' },
    { text: 'CPU of Redis', of: ours('cpuMs'), atMost: 1_000, unit: ' ms' },
    { text: 'list() of 1,000 jobs', of: ours('listMs'), atMost: 50, unit: ' ms' },
  ],
  async run(bench) {
    const size = { instances: bench.count(INSTANCES, 40), jobs: bench.count(JOBS, 5), listed: bench.count(LISTED, 50) };
    const rounds = Math.min(bench.rounds, ROUNDS);
    return { rounds: await roundsOfOurs(bench, 'fleet-of-crons', () => oneFleet(bench, size), { rounds }) };
  },
};

async function oneFleet({ url }, { instances, jobs, listed }) {
  const workers = Array.from({ length: PROCESSES }, () => new WorkerProcess({ contestant: OURS, url }));
  const ask = (step, args) => Promise.all(workers.map((worker) => worker.ask('crons', { step, ...args }, PATIENCE)));
  const cpu = () => workers[0].ask('crons', { step: 'cpu' });
  try {
    await ask('start', { instances: instances / PROCESSES, jobs });
    const warmUp = soon();
    await ask('tick', { at: warmUp });
    const before = await cpu();
    const ticked = await ask('tick', { at: soon(), before: warmUp });
    const after = await cpu();
    const { known, ...listing } = await workers[0].ask('crons', { step: 'list', jobs: listed }, PATIENCE);
    if (known < listed) throw new Error(`list() returned ${known} of ${listed} jobs`);
    const claims = total(ticked, 'claims');
    const cpuMs = after.usedMs - before.usedMs;
    return {
      cpuMs,
      cpuPerClaimUs: (cpuMs * 1000) / (instances * jobs),
      scripts: after.scripts - before.scripts,
      unanswered: instances * jobs - claims,
      wrongRuns: Math.abs(total(ticked, 'runs') - jobs),
      answeredMs: Math.max(...ticked.map(({ answeredMs }) => answeredMs)),
      ...listing,
    };
  } finally {
    for (const worker of workers) worker.kill();
    await Promise.all(workers.map(({ exited }) => exited));
  }
}

/** A whole second that is not the one of the tick before. */
function soon() {
  return Math.ceil((Date.now() + AHEAD_MS) / 1000) * 1000;
}

function total(results, id) {
  return results.reduce((sum, result) => sum + result[id], 0);
}
