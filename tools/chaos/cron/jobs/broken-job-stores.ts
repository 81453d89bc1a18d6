import type { JobStore } from '../../../../lib/core/store/job-store.js';
import type { TickStore } from '../../../../lib/core/store/tick-store.js';
import type { MemoryServer } from '../../../../lib/memory/memory-server.js';
import type { JobSimulationOptions } from './job-simulation.js';
import { RETRIED_JOBS, RETURNED_JOBS } from './simulated-record.js';

interface BrokenStore extends Pick<JobSimulationOptions, 'breakTicks' | 'breakJobs'> {
  /** Which rule finds it out. */
  readonly rule: string;
  /** In which simulation. */
  readonly options?: Partial<JobSimulationOptions>;
}

const LONG_MS = 1e9;
/** Many shutdowns, and many ticks that have not begun. */
const RETURNED = { jobs: RETURNED_JOBS, calmMs: 2_000 };

function ticksWith(change: (ticks: TickStore, server: MemoryServer) => Partial<TickStore>) {
  return (ticks: TickStore, server: MemoryServer): TickStore => ({
    claim: (tick, claim) => ticks.claim(tick, claim),
    finish: (tick, owner, keepMs) => ticks.finish(tick, owner, keepMs),
    giveBack: (tick, owner, keepMs) => ticks.giveBack(tick, owner, keepMs),
    ...change(ticks, server),
  });
}

function jobsWith(change: (jobs: JobStore, server: MemoryServer) => Partial<JobStore>) {
  return (jobs: JobStore, server: MemoryServer): JobStore => ({
    end: (run, lazily) => jobs.end(run, lazily),
    noteMissed: (missed) => jobs.noteMissed(missed),
    look: (...args) => jobs.look(...args),
    pause: (resource, pause) => jobs.pause(resource, pause),
    resume: (resource) => jobs.resume(resource),
    register: (registrations) => jobs.register(registrations),
    list: () => jobs.list(),
    ...change(jobs, server),
  });
}

/** Does not see a pause of some claims. */
function pauseIgnored(isIgnored: (claim: Parameters<TickStore['claim']>[1]) => boolean) {
  return ticksWith((ticks, { jobs: { pauses } }) => ({
    claim(tick, claim) {
      const pause = pauses.get(tick.resource);
      if (!pause || !isIgnored(claim)) return ticks.claim(tick, claim);
      pauses.delete(tick.resource);
      const reply = ticks.claim(tick, claim);
      pauses.set(tick.resource, pause, LONG_MS);
      return reply;
    },
  }));
}

/** Stores that are wrong, each in its own way. */
export const brokenJobStores: Readonly<Record<string, BrokenStore>> = {
  'ticks do not heed a pause': { rule: 'paused', breakTicks: pauseIgnored(({ note }) => note?.kind === 'tick') },
  'a catch-up does not heed a pause': {
    rule: 'paused',
    breakTicks: pauseIgnored(({ note }) => note?.kind === 'catchUp'),
  },
  'a take-over does not heed a pause': {
    rule: 'paused',
    breakTicks: pauseIgnored(({ takeOver }) => takeOver !== 'nothing'),
    options: { jobs: RETRIED_JOBS, calmMs: 2_000 },
  },
  'the history is one run too short': {
    rule: 'history',
    breakTicks: ticksWith((ticks) => ({
      claim: (tick, { note, ...claim }) =>
        ticks.claim(tick, { ...claim, note: note && { ...note, historySize: note.historySize - 1 } }),
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
    breakJobs: jobsWith((jobs, server) => ({
      end(run) {
        const newest = server.jobs.get(run.owner.resource)?.runs[0]?.fencingToken;
        return jobs.end({ ...run, fencingToken: newest ?? run.fencingToken });
      },
    })),
  },
  'missed ticks are told by each that asks': {
    rule: 'told twice',
    breakJobs: jobsWith((jobs) => ({
      async noteMissed(missed) {
        const reply = await jobs.noteMissed(missed);
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
    breakTicks: ticksWith((ticks) => ({
      claim: (tick, { note, ...claim }) =>
        ticks.claim(tick, { ...claim, note: note && { ...note, previous: undefined } }),
    })),
  },
  'a catch-up is owed again once it was granted': {
    rule: 'catch-up',
    breakTicks: ticksWith((ticks, server) => ({
      async claim(tick, claim) {
        const reply = await ticks.claim(tick, claim);
        const job = server.jobs.get(tick.resource);
        if (claim.note?.kind === 'catchUp' && reply.status === 'granted') job!.owed = job!.span!.last;
        return reply;
      },
    })),
  },
  'each that asks for a catch-up gets one of its own': {
    rule: 'catch-up',
    breakTicks: ticksWith((ticks) => ({
      claim: (tick, claim) =>
        claim.note?.kind === 'catchUp'
          ? ticks.claim({ ...tick, tick: claim.owner.id }, { ...claim, note: { ...claim.note, kind: 'manual' } })
          : ticks.claim(tick, claim),
    })),
  },
  'no catch-up is owed': {
    rule: 'catch-up',
    breakJobs: jobsWith((jobs) => ({
      noteMissed: (missed) => jobs.noteMissed({ ...missed, runWithinMs: undefined }),
    })),
  },
  'a late tick is granted': {
    rule: 'missed and granted',
    breakTicks: ticksWith((ticks, { lastTicks }) => ({
      claim(tick, claim) {
        const last = lastTicks.get(tick.resource);
        if (!claim.due || last === undefined || claim.due.at > last) return ticks.claim(tick, claim);
        lastTicks.delete(tick.resource);
        const reply = ticks.claim(tick, { ...claim, due: { ...claim.due, lateMs: LONG_MS } });
        lastTicks.set(tick.resource, last, LONG_MS);
        return reply;
      },
    })),
  },
  'a manual run is counted as a tick': {
    rule: 'last tick',
    breakTicks: ticksWith((ticks, { lastTicks, clock }) => ({
      claim(tick, claim) {
        const reply = ticks.claim(tick, claim);
        if (claim.note?.kind === 'manual') lastTicks.set(tick.resource, clock.wallNow(), LONG_MS);
        return reply;
      },
    })),
  },
  'a tick that is given back takes the last tick with it': {
    rule: 'last tick',
    breakTicks: ticksWith((ticks, { lastTicks }) => ({
      giveBack(tick, owner, keepMs) {
        const due = Date.parse(tick.tick);
        if (lastTicks.get(tick.resource) === due) lastTicks.set(tick.resource, due - 1, LONG_MS);
        return ticks.giveBack(tick, owner, keepMs);
      },
    })),
  },
  'a tick that is given back is over': {
    rule: 'given back',
    breakTicks: ticksWith((ticks) => ({
      giveBack: (tick, owner, keepMs) => ticks.finish(tick, owner, keepMs),
    })),
    options: RETURNED,
  },
  'a tick that is given back counts as one that has begun': {
    rule: 'given back',
    breakTicks: ticksWith((ticks, { claims }) => ({
      async giveBack(tick, owner, keepMs) {
        await ticks.giveBack(tick, owner, keepMs);
        const key = JSON.stringify([tick.resource, tick.tick]);
        if (claims.get(key) === 'returned') claims.replace(key, 'returned reruns');
      },
    })),
    options: RETURNED,
  },
  'a run that is given back stays in the history': {
    rule: 'history',
    breakTicks: ticksWith((ticks, { jobs }) => ({
      async giveBack(tick, owner, keepMs) {
        const runs = jobs.get(tick.resource)?.runs ?? [];
        const before = [...runs];
        await ticks.giveBack(tick, owner, keepMs);
        runs.splice(0, runs.length, ...before);
      },
    })),
    options: RETURNED,
  },
  'a run that was granted too late, and is refused then, stays in the history': {
    rule: 'history',
    breakTicks: ticksWith((ticks, { jobs }) => ({
      async claim(tick, claim) {
        const runs = jobs.get(tick.resource)?.runs ?? [];
        const before = [...runs];
        const reply = await ticks.claim(tick, claim);
        if (reply.status === 'paused' || reply.status === 'overlap') runs.splice(0, runs.length, ...before);
        return reply;
      },
    })),
    options: RETURNED,
  },
  'what was missed before an early tick is told at once': {
    rule: 'told early',
    breakTicks: ticksWith((ticks) => ({
      async claim(tick, claim) {
        const reply = await ticks.claim(tick, claim);
        return reply.status === 'gap' ? { ...reply, lateMs: 0 } : reply;
      },
    })),
  },
  'a start moves the last tick back': {
    rule: 'last tick',
    breakJobs: jobsWith((jobs, { lastTicks, clock }) => ({
      register(registrations) {
        for (const { resource } of registrations) {
          const last = lastTicks.get(resource);
          if (last !== undefined) lastTicks.set(resource, Math.min(last, clock.wallNow() - 600_000), LONG_MS);
        }
        return jobs.register(registrations);
      },
    })),
  },
  'a resume does not account what was due during the pause': {
    rule: 'last tick',
    breakJobs: jobsWith((jobs, { lastTicks }) => ({
      resume(resource) {
        const last = lastTicks.get(resource);
        const reply = jobs.resume(resource);
        if (last !== undefined) lastTicks.set(resource, last, LONG_MS);
        return reply;
      },
    })),
  },
  'a new schedule makes all ticks since the last one missed': {
    rule: 'last tick',
    breakJobs: jobsWith((jobs, { lastTicks }) => ({
      register(registrations) {
        const before = registrations.map(({ resource }) => lastTicks.get(resource));
        const reply = jobs.register(registrations);
        registrations.forEach(({ resource }, index) => {
          if (before[index] !== undefined) lastTicks.set(resource, before[index], LONG_MS);
        });
        return reply;
      },
    })),
  },
  'what was due during a pause that is over is told as missed': {
    rule: 'told wrongly',
    breakJobs: jobsWith((jobs, server) => ({
      noteMissed(missed) {
        const job = server.jobs.get(missed.resource);
        if (job) job.timedPauses = [];
        return jobs.noteMissed(missed);
      },
    })),
  },
};
