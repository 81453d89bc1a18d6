import type { JobStore } from '../../../../lib/features/jobs/core/job-store.js';
import type { ClaimEnd } from '../../../../lib/features/jobs/core/job-claims.js';
import type { LockOwner } from '../../../../lib/kernel/store/lock-store.js';
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

/** A claim that ends. */
interface End {
  readonly jobs: JobStore;
  readonly owner: LockOwner;
  readonly claim: ClaimEnd;
}

const LONG_MS = 1e9;
/** Many shutdowns, and many ticks that have not begun. */
const RETURNED = { jobs: RETURNED_JOBS, calmMs: 2_000 };

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

/** Does something else where a tick is given back. */
function returningWith(change: (giveBack: () => Promise<boolean>, end: End, server: MemoryServer) => Promise<boolean>) {
  return jobsWith((jobs, server) => ({
    end(owner, ended) {
      const giveBack = (): Promise<boolean> => jobs.end(owner, ended);
      const { claim } = ended;
      if (claim?.to !== 'returned') return giveBack();
      return change(giveBack, { jobs, owner, claim }, server);
    },
  }));
}

/** The history of a job, as Redis has it. */
function runsOf({ redis, keys }: MemoryServer, resource: string): string[] {
  return redis.lrange(keys.jobRuns(resource), 0, -1);
}

function setRuns({ redis, keys }: MemoryServer, resource: string, runs: readonly string[]): void {
  redis.del(keys.jobRuns(resource));
  if (runs.length > 0) redis.lpush(keys.jobRuns(resource), ...runs.toReversed());
}

/** Does not see a pause of some claims. */
function pauseIgnored(isIgnored: (claim: Parameters<JobStore['claim']>[1]) => boolean) {
  return jobsWith((jobs, { redis, keys }) => ({
    claim(tick, claim) {
      const key = keys.jobPause(tick.resource);
      const pause = redis.get(key);
      if (!pause || !isIgnored(claim)) return jobs.claim(tick, claim);
      redis.del(key);
      const reply = jobs.claim(tick, claim);
      redis.set(key, pause, 'PX', LONG_MS);
      return reply;
    },
  }));
}

/** Stores that are wrong, each in its own way. */
export const brokenJobStores: Readonly<Record<string, BrokenStore>> = {
  'ticks do not heed a pause': { rule: 'paused', breakJobs: pauseIgnored(({ note }) => note?.kind === 'tick') },
  'a catch-up does not heed a pause': {
    rule: 'paused',
    first: 7,
    breakJobs: pauseIgnored(({ note }) => note?.kind === 'catchUp'),
  },
  'a take-over does not heed a pause': {
    rule: 'paused',
    breakJobs: pauseIgnored(({ takeOver }) => takeOver !== 'nothing'),
    options: { jobs: RETRIED_JOBS, calmMs: 2_000 },
  },
  'the history is one run too short': {
    rule: 'history',
    breakJobs: jobsWith((jobs) => ({
      claim: (tick, { note, ...claim }) =>
        jobs.claim(tick, { ...claim, note: note && { ...note, historySize: note.historySize - 1 } }),
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
  'a run that crashed is shown as running': {
    rule: 'history',
    breakJobs: jobsWith((jobs) => ({
      look: async (...args) =>
        (await jobs.look(...args)).map((state) => ({
          ...state,
          runs: state.runs.map(({ outcome, ...run }) =>
            outcome === 'crashed' || !outcome ? run : { ...run, outcome },
          ),
        })),
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
  'each that asks for a catch-up gets one of its own': {
    rule: 'catch-up',
    breakJobs: jobsWith((jobs) => ({
      claim: (tick, claim) =>
        claim.note?.kind === 'catchUp'
          ? jobs.claim({ ...tick, tick: claim.owner.id }, { ...claim, note: { ...claim.note, kind: 'manual' } })
          : jobs.claim(tick, claim),
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
  'a tick that is given back takes the last tick with it': {
    rule: 'last tick',
    breakJobs: returningWith((giveBack, { owner, claim }, { redis, keys }) => {
      const [key, due] = [keys.lastTick(owner.resource), Date.parse(claim.tick)];
      if (Number(redis.get(key)) === due) redis.set(key, due - 1, 'PX', LONG_MS);
      return giveBack();
    }),
  },
  'a tick that is given back is over': {
    rule: 'given back',
    breakJobs: returningWith((_, { jobs, owner, claim }) => jobs.end(owner, { claim: { ...claim, to: 'finished' } })),
    options: RETURNED,
  },
  'a tick that is given back counts as one that has begun': {
    rule: 'given back',
    breakJobs: returningWith(async (giveBack, { owner, claim }, { redis, keys }) => {
      await giveBack();
      const key = keys.tick(owner.resource, claim.tick);
      if (redis.get(key) === 'returned') redis.set(key, 'returned reruns', 'KEEPTTL');
      return true;
    }),
    options: RETURNED,
  },
  'a run that is given back stays in the history': {
    rule: 'history',
    breakJobs: returningWith(async (giveBack, { owner }, server) => {
      const before = runsOf(server, owner.resource);
      await giveBack();
      setRuns(server, owner.resource, before);
      return true;
    }),
    options: RETURNED,
  },
  'a run that was granted too late, and is refused then, stays in the history': {
    rule: 'history',
    first: 51,
    breakJobs: jobsWith((jobs, server) => ({
      async claim(tick, claim) {
        const before = runsOf(server, tick.resource);
        const reply = await jobs.claim(tick, claim);
        if (reply.status === 'paused' || reply.status === 'overlap') setRuns(server, tick.resource, before);
        return reply;
      },
    })),
    options: RETURNED,
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
  'a start moves the last tick back': {
    rule: 'last tick',
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      register(registrations) {
        for (const { resource } of registrations) {
          const last = redis.get(keys.lastTick(resource));
          const before = Math.min(Number(last), redis.now() - 600_000);
          if (last !== undefined) redis.set(keys.lastTick(resource), before, 'PX', LONG_MS);
        }
        return jobs.register(registrations);
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
  'a new schedule makes all ticks since the last one missed': {
    rule: 'last tick',
    first: 6,
    breakJobs: jobsWith((jobs, { redis, keys }) => ({
      register(registrations) {
        const before = registrations.map(({ resource }) => redis.get(keys.lastTick(resource)));
        const reply = jobs.register(registrations);
        registrations.forEach(({ resource }, index) => {
          if (before[index] !== undefined) redis.set(keys.lastTick(resource), before[index], 'PX', LONG_MS);
        });
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
