import type { JobStore, MissedNote, RunEnd } from '../../../lib/features/jobs/core/job-store.js';
import type { LockOwner, LockStore } from '../../../lib/kernel/store/lock-store.js';
import type { Tick, TickClaim, TickReply, ClaimMetadata } from '../../../lib/features/jobs/core/job-claims.js';
import { LONG_MS, newOwner } from '../requests.js';
import type { Base } from '../suite.js';
import type { JobState } from '../../../lib/features/jobs/core/job-state.js';

export const JOB = 'cron:report';
export const MINUTE_MS = 60_000;
export const SCHEDULE = '* * * * * Europe/Berlin';
export const DAY_MS = 24 * 60 * MINUTE_MS;

export type Granted = Extract<TickReply, { status: 'granted' }>;

/** One instance. */
interface JobPeer {
  readonly store: LockStore;
  readonly jobs: JobStore;
}

/** Two instances that know one job. */
export async function openJobs({ subject }: Base) {
  const open = async (instanceId: string): Promise<JobPeer> => {
    const { locks, jobs } = await subject.open(instanceId);
    return { store: locks, jobs };
  };
  const one = await open('one');
  const two = await open('two');
  return {
    one,
    two,
    /** The tick of this minute, by the clock of the store. */
    at: Math.floor((await subject.now()) / MINUTE_MS) * MINUTE_MS,
    look: async (limit = 100): Promise<JobState> => (await one.jobs.look([JOB], limit, 100))[0]!,
  };
}

export const tickAt = (time: number): Tick => ({ resource: JOB, tick: new Date(time).toISOString() });
export const ownerOf = ({ store }: JobPeer): LockOwner => newOwner(store, JOB);

export function noteOf(time: number, changes: Partial<ClaimMetadata> = {}): ClaimMetadata {
  const ahead = { previous: time - MINUTE_MS, next: time + MINUTE_MS };
  return { kind: 'tick', historySize: 100, schedule: SCHEDULE, ...ahead, ...changes };
}

export function claimOf(owner: LockOwner, note: ClaimMetadata, changes: Partial<TickClaim> = {}): TickClaim {
  return { owner, leaseMs: LONG_MS, claimTtlMs: DAY_MS, overlap: 'skip', takeOver: 'nothing', note, ...changes };
}

/** Claims the tick that is due at this time. */
export function claim(
  by: JobPeer,
  time: number,
  owner = ownerOf(by),
  note: Partial<ClaimMetadata> = {},
  changes: Partial<TickClaim> = {},
): Promise<TickReply> {
  const due = { at: time, earlyMs: MINUTE_MS, lateMs: DAY_MS };
  return by.jobs.claim(tickAt(time), claimOf(owner, noteOf(time, note), { due, ...changes }));
}

/** Claims a tick whose text is no time. */
export const claimTick = (
  by: JobPeer,
  tick: string,
  owner: LockOwner,
  kind: ClaimMetadata['kind'],
  changes: Partial<TickClaim> = {},
) => by.jobs.claim({ resource: JOB, tick }, claimOf(owner, { kind, historySize: 100 }, changes));

export async function end(
  by: JobPeer,
  owner: LockOwner,
  reply: TickReply,
  changes: Partial<RunEnd> = {},
): Promise<boolean> {
  const { fencingToken } = reply as Granted;
  return by.jobs.end(owner, { run: { fencingToken, outcome: 'ok', ...changes } });
}

/** A run from its claim to its end. */
export async function run(
  by: JobPeer,
  time: number,
  changes: Partial<RunEnd> = {},
  note: Partial<ClaimMetadata> = {},
): Promise<void> {
  const owner = ownerOf(by);
  await end(by, owner, await claim(by, time, owner, note), changes);
}

export const missedOf = (changes: Partial<MissedNote> & Pick<MissedNote, 'after' | 'ticks'>): MissedNote => ({
  resource: JOB,
  schedule: SCHEDULE,
  historySize: 100,
  ...changes,
});
