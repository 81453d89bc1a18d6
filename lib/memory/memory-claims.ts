import { MemoryServer } from './memory-server.js';
import { catchUpOf, type JobClaims } from '../core/store/job-store.js';
import type { LockOwner } from '../core/store/lock-store.js';
import { instanceOf } from '../core/store/owner-id.js';
import { addRuns, dropOpenRun, forgetRun, type MemoryJob } from './memory-jobs.js';
import {
  type ClaimChange,
  claimText,
  FINISHED,
  readClaim,
  RERUNS,
  RETURNED,
  returnedFrom,
  RUNS,
  type ClaimEnd,
  type ClaimNode,
  type DueRefusal,
  LAST_TICK_KEEP_MS,
  refusalOf,
  type TickDue,
  type Tick,
  type TickClaim,
  type TickReply,
  type JobNote,
  type MissedSpan,
} from '../core/store/job-claims.js';

/** See {@link JobNote.schedule}; as in lua/claim-tick.lua. */
const SCHEDULE_STANDS_MS = 2 * 24 * 60 * 60 * 1000;
/** How long after its time a tick may still be claimed, where the claim does not say it. */
const DUE_STANDS_MS = 60_000;

/**
 * Claims of ticks in the memory of **one process**, for tests without Redis. Pass it the server of the lock store: the
 * claim of a tick takes the job's lock there in the same step.
 */
export class MemoryClaims implements JobClaims, ClaimNode {
  constructor(private readonly server: MemoryServer = new MemoryServer()) {}

  async claim(
    tick: Tick,
    { owner: { id: owner }, leaseMs, keepMs, overlap, takeOver, due, note }: TickClaim,
  ): Promise<TickReply> {
    const { claims, locks, jobs, clock } = this.server;
    const { resource } = tick;
    const key = claimKey(tick);
    const isNew = note?.next !== undefined && jobs.get(resource)?.next === undefined;
    const isRemembered = note && (note.historySize > 0 || note.schedule !== undefined || note.next !== undefined);
    if (isRemembered) jobs.noteInstance(jobs.keep(resource, undefined), instanceOf(owner));
    const claim = claims.get(key);
    if (claim !== undefined && !due && takeOver === 'nothing') claims.shorten(key, keepMs);
    if (claim !== undefined) this.#noteOthersTick(resource, note);
    if (claim === FINISHED || (takeOver !== 'nothing' && claim === undefined)) return { status: 'finished' };
    const { claimant, state } = readClaim(claim);
    const rerun = state === RERUNS || (state === RUNS && claimant !== owner);
    const lock = locks.get(resource);
    const member = lock?.member(owner);
    if (lock && member) {
      // The command was sent again.
      lock.lengthen(member, leaseMs);
      return { status: 'granted', fencingToken: member.fencingToken, rerun, ...this.#missed(tick, note) };
    }
    const ttlMs = locks.ttlMs(resource);
    if (claim !== undefined && claimant !== owner && claimant !== RETURNED) {
      // A watching instance keeps the claim alive, however long the run takes.
      if (takeOver !== 'nothing') claims.set(key, claim, keepMs);
      const isBegun = state !== '';
      if (lock || takeOver === 'nothing' || (isBegun && takeOver === 'unbegun')) {
        return { status: 'taken', ttlMs, isBegun };
      }
    }
    const job = isRemembered ? jobs.keep(resource, note.next) : jobs.get(resource);
    if (due && claim === undefined) {
      const refusal = this.#judge(tick, due, note, job) ?? (note && job && this.#gap(tick, due, note, job));
      if (refusal) return refusal;
    }
    if (note?.kind === 'catchUp' && claim === undefined && jobs.owedOf(job)?.last !== catchUpOf(tick.tick)) {
      return { status: 'finished' };
    }
    const pause = note && note.kind !== 'manual' ? jobs.pauses.get(resource) : undefined;
    if (note && claimant === owner && state !== '' && (pause || (lock && overlap === 'skip'))) {
      // The answer to an earlier grant of this owner came too late, and now it does not get the run.
      forgetRun(job, tick.tick);
      if (note.kind === 'catchUp') claims.set(key, returnedFrom(claim!), keepMs);
    }
    if (pause) {
      // It is over for all instances, also for those that ask after a resume.
      if (due) this.#note(tick, due);
      if (note!.kind === 'tick') {
        claims.set(key, FINISHED, keepMs);
        if (job) this.#noteSchedule(job, note!, due);
      }
      const { by, until } = pause;
      return { status: 'paused', ...(by !== undefined && { by }), ...(until !== undefined && { until }) };
    }
    if (lock && note?.kind === 'catchUp' && overlap === 'skip') return { status: 'overlap' };
    if (due) this.#note(tick, due);
    if (note && job) {
      if (note.kind === 'tick') job.since = undefined;
      this.#noteSchedule(job, note, due);
    }
    if (lock && overlap === 'skip') {
      claims.set(key, FINISHED, keepMs);
      return { status: 'overlap' };
    }
    const granted = claimText(owner, rerun ? RERUNS : RUNS);
    if (lock) {
      // A granted run stays granted: this may be an old command that comes late, after the run.
      claims.set(key, state === '' ? owner : granted, keepMs);
      return { status: 'claimed', ttlMs };
    }
    claims.set(key, granted, keepMs);
    const run: LockOwner = { resource, id: owner, mode: 'exclusive' };
    const fencingToken = this.server.take(run, leaseMs);
    if (!note || !job) return { status: 'granted', fencingToken, rerun };
    if (note.kind === 'catchUp') job.owed = undefined;
    // The answer to an earlier grant of this owner came too late: that run never began.
    if (claimant === owner && state !== '') dropOpenRun(job, tick.tick);
    const marks = { rerun, manual: note.kind === 'manual', catchUp: note.kind === 'catchUp' };
    const begun = {
      tick: tick.tick,
      startedAt: clock.wallNow(),
      instanceId: instanceOf(owner),
      ...marks,
      fencingToken,
    };
    addRuns(job, note.historySize, begun);
    return { status: 'granted', fencingToken, rerun, ...this.#missed(tick, note), ...(isNew && { isNew }) };
  }

  /** What a catch-up is for. */
  #missed({ resource }: Tick, note: JobNote | undefined): { missed?: MissedSpan } {
    const span = note?.kind === 'catchUp' ? this.server.jobs.get(resource)?.span : undefined;
    return span ? { missed: { count: span.count, first: span.first, last: span.last } } : {};
  }

  /** Whether ticks before this one were missed. With this one accounted, none of them could be claimed. */
  #gap(
    { resource }: Tick,
    { at, earlyMs }: TickDue,
    { schedule, previous }: JobNote,
    job: MemoryJob,
  ): TickReply | undefined {
    const { lastTicks, clock } = this.server;
    const last = lastTicks.get(resource);
    if (schedule === undefined || previous === undefined || job.schedule !== schedule) return undefined;
    if (last === undefined || last > clock.wallNow() + earlyMs || last >= previous) return undefined;
    return { status: 'gap', last, lateMs: clock.wallNow() - at };
  }

  /** The instance comes to the ticks of its schedule, also where another one was first at this tick. */
  #noteOthersTick(resource: string, note: JobNote | undefined): void {
    const { jobs, clock } = this.server;
    const job = jobs.get(resource);
    if (note?.kind !== 'tick' || note.schedule === undefined || note.schedule !== job?.schedule) return;
    if (note.next !== undefined && job.next !== undefined && note.next > job.next) {
      Object.assign(job, { next: note.next, stated: clock.wallNow() });
    }
  }

  #noteSchedule(job: MemoryJob, { next, schedule }: JobNote, due: TickDue | undefined): void {
    const now = this.server.clock.wallNow();
    const isStated = job.stated !== undefined && now < job.stated + SCHEDULE_STANDS_MS;
    // An instance with the other schedule still comes to its ticks.
    if (job.schedule !== schedule && isStated && now <= (job.next ?? 0) + (due?.lateMs ?? DUE_STANDS_MS)) return;
    if (next !== undefined) Object.assign(job, { next, stated: now });
    if (schedule === undefined || schedule === job.schedule) return;
    job.schedule = schedule;
    job.owed = undefined;
  }

  async end({ resource, id }: LockOwner, { claim: ended }: { readonly claim?: ClaimEnd }): Promise<boolean> {
    if (!ended) return true;
    const { claims, jobs } = this.server;
    const { tick, to, keepMs } = ended;
    const key = claimKey({ resource, tick });
    const claim = claims.get(key);
    const { claimant, state } = readClaim(claim);
    if (claim === undefined || claimant !== id) return true;
    claims.set(key, to === 'finished' ? FINISHED : returnedFrom(claim), keepMs);
    if (to === 'returned' && state !== '') forgetRun(jobs.get(resource), tick);
    return true;
  }

  async exchange(
    tick: Tick,
    { to, from, force, drop, keepMs, mostMs, due, isJudged }: ClaimChange,
  ): Promise<string | null> {
    const { claims } = this.server;
    const key = claimKey(tick);
    // Kept, not deleted: the last tick of the job is already noted, and would refuse it.
    if (drop !== undefined && claims.get(key) === drop) claims.replace(key, returnedFrom(drop));
    const standing = claims.get(key);
    const refusal = due && isJudged && standing === undefined ? this.#judge(tick, due) : undefined;
    if (refusal) return `${refusal.status} ${refusal.lateMs}`;
    const isOpen =
      standing === undefined ||
      standing === from ||
      readClaim(standing).claimant === RETURNED ||
      (force && standing !== FINISHED);
    const stands = to !== undefined && isOpen ? to : standing;
    if (due && to !== undefined && isOpen) this.#note(tick, due);
    if (stands !== undefined && keepMs !== undefined) claims.set(key, stands, keepMs);
    if (mostMs !== undefined) claims.shorten(key, mostMs);
    return stands ?? null;
  }

  #judge({ resource }: Tick, due: TickDue, note?: JobNote, job?: MemoryJob): DueRefusal | undefined {
    const { lastTicks, clock } = this.server;
    const [last, now] = [lastTicks.get(resource) ?? 0, clock.wallNow()];
    // A call by hand asks for the tick that was due last. In a new job, that was before anything was known of it.
    const isOfStart = note?.kind === 'tick' && job?.since === last && (note.next ?? 0) > now;
    return refusalOf(due, isOfStart ? 0 : last, now);
  }

  #note({ resource }: Tick, { at, earlyMs }: TickDue): void {
    const { lastTicks, clock } = this.server;
    const last = lastTicks.get(resource) ?? 0;
    const keepMs = Math.max(LAST_TICK_KEEP_MS, this.server.jobs.leftMs(resource));
    if (at > last || last > clock.wallNow() + earlyMs) lastTicks.set(resource, at, keepMs);
  }
}

function claimKey({ resource, tick }: Tick): string {
  return JSON.stringify([resource, tick]);
}
