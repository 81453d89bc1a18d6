import {
  catchUpTick,
  type JobPause,
  type JobRegistration,
  type JobState,
  type JobStore,
  type MissedReply,
  type MissedNote,
  MOST_TIMED_PAUSES,
  readHistory,
  type RunEnd,
  type StoredRun,
} from '../core/store/job-store.js';
import {
  type ClaimEnd,
  LAST_TICK_KEEP_MS,
  type Tick,
  type TickClaim,
  type TickReply,
} from '../core/store/job-claims.js';
import type { LockOwner } from '../core/store/lock-store.js';
import { MemoryClaims } from './memory-claims.js';
import { addRuns, type MemoryJob } from './memory-jobs.js';
import type { MemoryLockStore } from './memory-lock-store.js';
import type { MemoryServer } from './memory-server.js';

/** What is known of jobs, in the memory of **one process**, for tests without Redis. */
export class MemoryJobStore implements JobStore {
  constructor(
    private readonly store: MemoryLockStore,
    private readonly claims = new MemoryClaims(store.connected()),
  ) {}

  claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
    return this.claims.claim(tick, claim);
  }

  async end(owner: LockOwner, ended: { readonly claim?: ClaimEnd; readonly run?: RunEnd }): Promise<boolean> {
    await this.claims.end(owner, ended);
    return ended.run ? this.#endRun(owner, ended.run) : true;
  }

  async #endRun(owner: LockOwner, run: RunEnd): Promise<boolean> {
    const { fencingToken, outcome, errorName, errorCode, errorMessage } = run;
    const { jobs, clock } = this.#server;
    const released = await this.store.release(owner);
    const job = jobs.get(owner.resource);
    const index = job?.runs.findIndex((each) => each.fencingToken === fencingToken) ?? -1;
    const stored = job?.runs[index];
    const endedAt = clock.wallNow();
    if (stored && stored.outcome === undefined) {
      if (outcome === 'none') job!.runs.splice(index, 1);
      else {
        job!.runs[index] = {
          ...stored,
          endedAt,
          outcome,
          ...(errorName && { errorName }),
          ...(errorCode && { errorCode }),
          ...(errorMessage && { errorMessage }),
        };
      }
    }
    const isFirst = stored ? stored.outcome === undefined : released;
    // Without a history and a record, the run leaves nothing behind.
    if (job && outcome === 'ok' && isFirst) job.lastSuccessAt = endedAt;
    return released;
  }

  async note(missed: MissedNote): Promise<MissedReply> {
    const { resource, schedule, after, historySize, runWithinMs, next } = missed;
    const { jobs, lastTicks, clock } = this.#server;
    const now = clock.wallNow();
    const known = jobs.get(resource);
    const isPaused = this.#pausesOf(resource, known);
    const ticks = missed.ticks.filter((tick) => !isPaused(tick));
    const earlier = missed.earlier && !isPaused(missed.earlier.first) ? missed.earlier : undefined;
    const last = ticks.at(-1) ?? earlier?.last;
    const count = ticks.length + (earlier?.count ?? 0);
    const first = earlier?.first ?? ticks[0]!;
    const told = `${after} ${missed.ticks.at(-1)} ${this.store.instanceId}`;
    if (known?.schedule !== schedule || lastTicks.get(resource) !== after) {
      // The answer to the same command was lost.
      const isSame = last !== undefined && known?.told === told;
      return isSame
        ? { status: 'noted', missed: { count, first, last, ticks }, ...this.#owed(known) }
        : { status: 'stale', ...this.#owed(known) };
    }
    const job = jobs.keep(resource, next);
    lastTicks.set(resource, missed.ticks.at(-1)!, Math.max(jobs.leftMs(resource), LAST_TICK_KEEP_MS));
    if (last === undefined) return { status: 'noted', ...this.#owed(job) };
    job.missed += count;
    job.told = told;
    const { instanceId } = this.store;
    addRuns(job, historySize, ...ticks.map((tick) => missedRun(tick, now, instanceId)));
    if (runWithinMs !== undefined && last + runWithinMs >= now) {
      const owed = jobs.owedOf(job);
      job.span = { count: count + (owed?.count ?? 0), first: owed?.first ?? first, last, until: last + runWithinMs };
      job.owed = last;
    }
    return { status: 'noted', missed: { count, first, last, ticks }, ...this.#owed(job) };
  }

  async look(resources: readonly string[], limit: number, instances = 0): Promise<JobState[]> {
    return resources.map((resource) => {
      const state = this.#stateOf(resource, limit, instances);
      if (!state.isKnown) this.#server.jobs.index.delete(resource);
      return state;
    });
  }

  async pause(resource: string, { by, until }: Omit<JobPause, 'at'>): Promise<JobPause | undefined> {
    const { jobs, lastTicks, clock } = this.#server;
    const now = clock.wallNow();
    const standing = jobs.pauses.get(resource);
    jobs.index.add(resource);
    const at = standing?.at ?? now;
    const pause = { at, ...(by && { by }), ...(until !== undefined && { until }) };
    if (until === undefined) {
      jobs.pauses.set(resource, pause, Infinity);
    } else {
      jobs.pauses.set(resource, pause, Math.max(1, until - now));
      const job = jobs.keep(resource, until);
      const last = lastTicks.get(resource) ?? 0;
      // The one that it replaces began when it does.
      const others = job.timedPauses.filter((earlier) => earlier.until > last && earlier.from !== at);
      job.timedPauses = [...others, { from: at, until }].slice(-MOST_TIMED_PAUSES);
    }
    return standing;
  }

  async resume(resource: string): Promise<JobPause | undefined> {
    const { jobs, lastTicks, clock } = this.#server;
    const standing = jobs.pauses.get(resource);
    if (!standing) return undefined;
    jobs.pauses.delete(resource);
    const job = jobs.get(resource);
    const now = clock.wallNow();
    if (job?.schedule !== undefined && (lastTicks.get(resource) ?? 0) < now) {
      lastTicks.set(resource, now, Math.max(jobs.leftMs(resource), jobs.keepMs(undefined)));
    }
    if (job) job.timedPauses = [];
    return standing;
  }

  async register(registrations: readonly JobRegistration[]): Promise<JobState[]> {
    return registrations.map(({ resource, schedule, next }) => {
      const { jobs, lastTicks, clock } = this.#server;
      const now = clock.wallNow();
      const job = jobs.keep(resource, next);
      jobs.index.add(resource);
      const last = lastTicks.get(resource);
      if (schedule !== undefined && (job.schedule !== schedule || last === undefined)) {
        if ((last ?? 0) < now) lastTicks.set(resource, now, jobs.leftMs(resource));
        job.owed = undefined;
        job.since = last === undefined ? now : undefined;
      }
      job.schedule = schedule;
      job.next = next;
      job.stated = now;
      job.instances.delete(this.store.instanceId);
      jobs.noteInstance(job, this.store.instanceId);
      return this.#stateOf(resource, 0, 0);
    });
  }

  async list(): Promise<string[]> {
    return [...this.#server.jobs.index];
  }

  get #server(): MemoryServer {
    return this.store.connected();
  }

  #owed(job: MemoryJob | undefined): Pick<JobState, 'owed'> {
    const span = this.#server.jobs.owedOf(job);
    return span ? { owed: { ...span, tick: catchUpTick(span.last) } } : {};
  }

  /** Whether a tick was due during a pause. */
  #pausesOf(resource: string, job: MemoryJob | undefined): (tick: number) => boolean {
    const pause = this.#server.jobs.pauses.get(resource);
    return (tick) =>
      (pause !== undefined && tick >= pause.at && tick <= (pause.until ?? Infinity)) ||
      (job?.timedPauses.some(({ from, until }) => tick >= from && tick <= until) ?? false);
  }

  #stateOf(resource: string, limit: number, instances: number): JobState {
    const { jobs, lastTicks, locks, clock } = this.#server;
    const job = jobs.get(resource);
    const pause = jobs.pauses.get(resource);
    const last = lastTicks.get(resource);
    const token = locks.get(resource)?.members()[0]?.fencingToken;
    return {
      resource,
      isKnown: job !== undefined || pause !== undefined,
      now: clock.wallNow(),
      ...(job?.schedule !== undefined && { schedule: job.schedule }),
      ...(job?.next !== undefined && { next: job.next }),
      ...(last !== undefined && { last }),
      missed: job?.missed ?? 0,
      ...(job?.lastSuccessAt !== undefined && { lastSuccessAt: job.lastSuccessAt }),
      ...this.#owed(job),
      ...(pause && { pause }),
      ...(job && job.timedPauses.length > 0 && { timedPauses: job.timedPauses }),
      ...readHistory(job?.runs ?? [], token, limit),
      instances: [...(job?.instances ?? [])]
        .reverse()
        .slice(0, instances)
        .map(([instanceId, seenAt]) => ({ instanceId, seenAt })),
      instanceCount: instances > 0 ? (job?.instances.size ?? 0) : 0,
    };
  }
}

function missedRun(tick: number, startedAt: number, instanceId: string): StoredRun {
  const marks = { rerun: false, manual: false, catchUp: false };
  return { tick: new Date(tick).toISOString(), startedAt, instanceId, ...marks, outcome: 'missed' };
}
