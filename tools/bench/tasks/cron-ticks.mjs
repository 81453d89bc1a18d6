// Ticks of cron jobs, claimed as `@SingletonCron` claims them.
import { partsOf } from '../../../dist/modules/nest/service-parts.js';
import { runJob } from '../../../dist/modules/features/jobs/nest/run-job.js';
import { resolveJobOptions, TICK_OPTIONS } from '../../../dist/modules/features/jobs/nest/singleton-options.js';

const SECOND_MS = 1_000;
const REGISTERED_AT_ONCE = 100;

/** The schedule of every job here: each second. */
const SCHEDULE = {
  text: '* * * * * * UTC',
  after: (time) => (Math.floor(time / SECOND_MS) + 1) * SECOND_MS,
  between: async () => ({ count: 0, ticks: [] }),
};
const options = resolveJobOptions({}, 'the benchmark', TICK_OPTIONS);

/** @returns {number} the first tick after this time */
export const tickAfter = SCHEDULE.after;

/** Lets the fleet know jobs of these names, whose first tick is `next`. */
export async function register(service, names, next = tickAfter(Date.now())) {
  const { jobs } = partsOf(service).singletonRuns;
  for (let from = 0; from < names.length; from += REGISTERED_AT_ONCE) {
    const some = names.slice(from, from + REGISTERED_AT_ONCE);
    await jobs.register(some.map((name) => ({ resource: `cron:${name}`, schedule: SCHEDULE.text, next })));
  }
}

/**
 * Claims a tick, and does the work if this instance gets it.
 *
 * @param {{ at: number, before?: number }} tick when it is due, and the one before it
 */
export function runOnce(service, name, { at, before }, work = () => {}) {
  const due = { at, maxClockSkewMs: options.maxClockSkewMs };
  const schedule = { ...SCHEDULE, around: () => ({ before, after: at + SECOND_MS }) };
  const tick = { tick: new Date(at).toISOString(), claimTtlMs: options.maxClockSkewMs, due, schedule };
  return runJob(service, { name, options, work }, { kind: 'tick', tick });
}
