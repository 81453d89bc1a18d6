import { type Lease, LockError } from 'nestjs-redis-lock';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Ticked } from '../history/entries.js';
import type { Bench } from './bench.js';

const PERIOD_MS = 200;
const LOOK_MS = 10;
const JOBS = [
  ['report', 'skip'],
  ['mail', 'retry'],
] as const;
/** Longer than any clock of the fleet is wrong. */
const KEEP_MS = 300_000;

/** Fires the ticks of two jobs by the wall clock of this process, as a scheduler would. Gives the function that ends it. */
export function tick(bench: Bench): () => void {
  let last = '';
  const timer = setInterval(() => {
    const nominal = new Date(Math.floor(Date.now() / PERIOD_MS) * PERIOD_MS).toISOString();
    if (nominal === last || bench.isOver) return;
    last = nominal;
    for (const [job, onCrash] of JOBS) void run(bench, { job, tick: nominal, onCrash });
  }, LOOK_MS);
  return () => clearInterval(timer);
}

async function run(bench: Bench, what: { job: string; tick: string; onCrash: 'skip' | 'retry' }): Promise<void> {
  const { leaseMs } = bench.settings;
  const options = { ...what, overlap: 'skip', claimTtlMs: KEEP_MS, lock: { leaseMs, waitMs: leaseMs } } as const;
  let ran: Pick<Ticked, 'type' | 'job' | 'tick' | 'onCrash' | 'rerun' | 'token'> | undefined;
  try {
    await bench.locks.runSingleton(options, async (_lease, { rerun, lease }) => {
      ran = { type: 'tick', ...what, rerun, token: lease.fencingToken };
      bench.log.say({ ...ran, phase: 'start', ...deadlineOf(lease) });
      await new Promise((resolve) => setTimeout(resolve, bench.upTo(PERIOD_MS)));
      bench.log.say({ ...ran, phase: 'end', ...deadlineOf(lease) });
    });
    const at = machineNow();
    if (ran) bench.log.say({ ...ran, phase: 'done', at, until: at });
  } catch (error) {
    if (error instanceof LockError) return;
    bench.log.crash(`tick of ${what.job}`, error);
  }
}

function deadlineOf(lease: Lease): { at: number; until: number } {
  const at = machineNow();
  return { at, until: at + lease.remainingMs() };
}
