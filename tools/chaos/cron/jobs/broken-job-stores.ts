import type { JobStore } from '../../../../lib/features/jobs/core/job-store.js';
import type { MemoryServer } from '../../../../lib/memory/memory-server.js';
import type { JobSimulationOptions } from './job-simulation.js';
import { RETRIED_JOBS, RETURNED_JOBS } from './simulated-record.js';

interface BrokenStore extends Pick<JobSimulationOptions, 'breakJobs'> {
  /** Which rule finds it out. */
  readonly rule: string;
  /** In which simulation. */
  readonly options?: Partial<JobSimulationOptions>;
  /** The seed of the first world that is tried: one that finds it out soon. @default 1 */
  readonly first?: number;
}

const LONG_MS = 1e9;
function jobsWith(change: (jobs: JobStore, server: MemoryServer) => Partial<JobStore>) {
  return (jobs: JobStore, server: MemoryServer): JobStore => ({
    claim: (tick, claim) => jobs.claim(tick, claim),
    end: (...args) => jobs.end(...args),
    note: (missed) => jobs.note(missed),
    look: (...args) => jobs.look(...args),
    pause: (resource, pause) => jobs.pause(resource, pause),
    resume: (resource) => jobs.resume(resource),
    register: (registrations) => jobs.register(registrations),
    list: () => jobs.list(),
    ...change(jobs, server),
  });
}

let forged = 0;

/** Stores that are wrong, each in its own way. */
export const brokenJobStores: Readonly<Record<string, BrokenStore>> = {
  'a claim is forgotten at once': {
    rule: 'duplicate',
    breakJobs: jobsWith((jobs) => ({
      claim: (tick, claim) => jobs.claim(tick, { ...claim, due: undefined, claimTtlMs: 1 }),
      end: (owner, { claim, ...ended }) =>
        jobs.end(owner, { ...ended, ...(claim && { claim: { ...claim, claimTtlMs: 1 } }) }),
    })),
  },
  'a rescuer gets the tick of a runner who lives': {
    rule: 'overlap',
    breakJobs: jobsWith((jobs) => ({
      async claim(tick, claim) {
        const reply = await jobs.claim(tick, claim);
        if (reply.status !== 'taken' || claim.takeOver === 'nothing' || reply.ttlMs === 0) return reply;
        return { status: 'granted', fencingToken: 2 ** 52 + ++forged, attempt: 2 };
      },
    })),
    options: { jobs: RETRIED_JOBS, calmMs: 2_000 },
  },
  'it is not noted that a run has ended': {
    rule: 'rerun of a whole run',
    breakJobs: jobsWith((jobs) => ({
      end: async (owner, ended) => ended.claim?.to === 'finished' || jobs.end(owner, ended),
    })),
    options: { jobs: RETRIED_JOBS, upMs: 300_000, calmMs: 2_000 },
  },
  'ticks do not heed a pause': {
    rule: 'paused',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      claim(tick, claim) {
        const key = keys.jobPause(tick.resource);
        const pause = redis.get(key);
        if (!pause || claim.note?.kind !== 'tick') return jobs.claim(tick, claim);
        redis.del(key);
        const reply = jobs.claim(tick, claim);
        redis.set(key, pause, 'PX', LONG_MS);
        return reply;
      },
    })),
  },
  'a full history loses its newest run': {
    rule: 'history',
    breakJobs: jobsWith((jobs) => ({
      look: async (...args) =>
        (await jobs.look(...args)).map((state) =>
          state.runs.length < 5 ? state : { ...state, runs: state.runs.slice(1) },
        ),
    })),
  },
  'the end is noted of the newest run, whichever it was': {
    rule: 'history',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      end(owner, { run, ...ended }) {
        const newest = redis.lrange(keys.jobRuns(owner.resource), 0, 0)[0]?.split(' ')[4];
        const fencingToken = Number(newest ?? run?.fencingToken);
        return jobs.end(owner, run ? { ...ended, run: { ...run, fencingToken } } : ended);
      },
    })),
  },
  'missed ticks are told by each that asks': {
    rule: 'told twice',
    first: 3,
    breakJobs: jobsWith((jobs) => ({
      async note(missed) {
        const reply = await jobs.note(missed);
        if (reply.status === 'noted') return reply;
        const { ticks, earlier } = missed;
        const first = earlier?.first ?? ticks[0]!;
        const count = ticks.length + (earlier?.count ?? 0);
        return { ...reply, status: 'noted', missed: { count, first, last: ticks.at(-1)!, ticks } };
      },
    })),
  },
  'missed ticks are passed over': {
    rule: 'not told',
    breakJobs: jobsWith((jobs) => ({
      claim: (tick, { note, ...claim }) =>
        jobs.claim(tick, { ...claim, note: note && { ...note, previous: undefined } }),
    })),
  },
  'a catch-up is owed again once it was granted': {
    rule: 'catch-up',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      async claim(tick, claim) {
        const reply = await jobs.claim(tick, claim);
        const record = keys.jobRecord(tick.resource);
        if (claim.note?.kind === 'catchUp' && reply.status === 'granted')
          redis.hset(record, 'owed', redis.hget(record, 'span')!.split(' ')[2]);
        return reply;
      },
    })),
  },
  'no catch-up is owed': {
    rule: 'catch-up',
    breakJobs: jobsWith((jobs) => ({
      note: (missed) => jobs.note({ ...missed, runWithinMs: undefined }),
    })),
  },
  'a late tick is granted': {
    rule: 'missed and granted',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      claim(tick, claim) {
        const key = keys.lastTick(tick.resource);
        const last = redis.get(key);
        if (!claim.due || last === undefined || claim.due.at > Number(last)) return jobs.claim(tick, claim);
        redis.del(key);
        const reply = jobs.claim(tick, { ...claim, due: { ...claim.due, lateMs: LONG_MS } });
        redis.set(key, last, 'PX', LONG_MS);
        return reply;
      },
    })),
  },
  'a manual run is counted as a tick': {
    rule: 'last tick',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      claim(tick, claim) {
        const reply = jobs.claim(tick, claim);
        if (claim.note?.kind === 'manual') redis.set(keys.lastTick(tick.resource), redis.now(), 'PX', LONG_MS);
        return reply;
      },
    })),
  },
  'a tick that is given back counts as one that has begun': {
    rule: 'given back',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      async end(owner, ended) {
        const reply = await jobs.end(owner, ended);
        const key = keys.tick(owner.resource, ended.claim?.tick ?? '');
        if (redis.get(key) === 'returned') redis.set(key, 'returned reruns', 'KEEPTTL');
        return reply;
      },
    })),
    options: { jobs: RETURNED_JOBS, calmMs: 2_000 },
  },
  'what was missed before an early tick is told at once': {
    rule: 'told early',
    breakJobs: jobsWith((jobs) => ({
      async claim(tick, claim) {
        const reply = await jobs.claim(tick, claim);
        return reply.status === 'gap' ? { ...reply, lateMs: 0 } : reply;
      },
    })),
  },
  'a resume does not account what was due during the pause': {
    rule: 'last tick',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      resume(resource) {
        const last = redis.get(keys.lastTick(resource));
        const reply = jobs.resume(resource);
        if (last !== undefined) redis.set(keys.lastTick(resource), last, 'PX', LONG_MS);
        return reply;
      },
    })),
  },
  'what was due during a pause that is over is told as missed': {
    rule: 'told wrongly',
    first: 4,
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      note(missed) {
        redis.hdel(keys.jobRecord(missed.resource), 'pause');
        return jobs.note(missed);
      },
    })),
  },
};
