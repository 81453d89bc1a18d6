import { chunks } from '../core/util/objects.js';
import {
  JOB_KEEP_MS,
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
import { LAST_TICK_KEEP_MS } from '../core/store/tick-store.js';
import { encodeField, readOwed, readPause, readRun, readTimedPauses } from './job-entries.js';
import type { RedisLockStore } from './redis-lock-store.js';
import { END_RUN, INDEX_JOBS, LOOK_JOBS, NOTE_MISSED, PAUSE_JOB, REGISTER_JOB } from './script/scripts.js';

/** How long the index of all jobs outlives the last registration. */
const INDEX_KEEP_MS = 400 * 24 * 60 * 60 * 1000;
/** So many jobs one script reads, where they can be in one. */
const JOBS_PER_SCRIPT = 50;
/** So many names are added to the index, or dropped from it, by one script. */
const NAMES_PER_SCRIPT = 1_000;
/** So many texts the reply has for each job; see lua/look-jobs.lua. */
const TEXTS_PER_JOB = 4;

/** What Redis remembers of jobs: a few keys beside the lock of each, and an index of all. */
export class RedisJobStore implements JobStore {
  constructor(private readonly store: RedisLockStore) {}

  end(run: RunEnd, lazily?: boolean): Promise<boolean> {
    const { keys } = this.store;
    const { owner, fencingToken, outcome, errorName, errorCode, errorMessage } = run;
    const texts = [errorName, errorCode, errorMessage].map(encodeField).join(' ');
    return this.store.endRun(
      END_RUN,
      owner.resource,
      [keys.jobRuns(owner.resource), keys.jobRecord(owner.resource)],
      [owner.id, fencingToken, outcome, texts],
      lazily,
    );
  }

  async noteMissed(missed: MissedNote): Promise<MissedReply> {
    const { keys, clientId } = this.store;
    const { resource, schedule, after, ticks, earlier, historySize, runWithinMs = '', next = '' } = missed;
    const terms = [schedule, after, historySize, runWithinMs, next, JOB_KEEP_MS, LAST_TICK_KEEP_MS, clientId];
    const reply = await this.store.run<unknown>(
      NOTE_MISSED,
      [
        keys.lastTick(resource),
        keys.jobRuns(resource),
        keys.jobRecord(resource),
        keys.jobPause(resource),
        keys.jobInstances(resource),
      ],
      [...terms, earlier?.count ?? 0, earlier?.first ?? '', earlier?.last ?? '', ...ticks],
    );
    const [status, count, first, last, text, counted] = reply as [string, number, number, number, string, number[]];
    const owed = readOwed(text);
    if (status === 'stale') return { status, ...(owed && { owed }) };
    return {
      status: 'noted',
      ...(count > 0 && { missed: { count, first, last, ticks: counted } }),
      ...(owed && { owed }),
    };
  }

  async look(resources: readonly string[], limit: number, instances = 0): Promise<JobState[]> {
    const { keys } = this.store;
    const size = this.store.isCluster ? 1 : JOBS_PER_SCRIPT;
    const states = chunks(resources, size).map(async (some) => {
      const all = some.flatMap((resource) => keys.ofJob(resource));
      const reply = (await this.store.run<unknown>(LOOK_JOBS, all, [limit, instances])) as [number, ...string[]];
      const looked = some.map((resource, index) => readState(resource, reply, 1 + index * TEXTS_PER_JOB, limit));
      this.#forget(looked.filter(({ isKnown }) => !isKnown));
      return looked;
    });
    return (await Promise.all(states)).flat();
  }

  async pause(resource: string, { by = '', until = 0 }: Omit<JobPause, 'at'>): Promise<JobPause | undefined> {
    return this.#pause(resource, 'pause', until, by);
  }

  resume(resource: string): Promise<JobPause | undefined> {
    return this.#pause(resource, 'resume', 0, '');
  }

  async #pause(resource: string, what: string, until: number, by: string): Promise<JobPause | undefined> {
    const { keys } = this.store;
    const own = [keys.jobPause(resource), keys.jobRecord(resource), keys.lastTick(resource)];
    const terms = [what, until, by, JOB_KEEP_MS, MOST_TIMED_PAUSES];
    const standing = readPause((await this.store.run(PAUSE_JOB, own, terms)) as string);
    if (what === 'pause') await this.#index('add', INDEX_KEEP_MS, [resource]);
    return standing;
  }

  async register(jobs: readonly JobRegistration[]): Promise<JobState[]> {
    const { keys, clientId } = this.store;
    const names = jobs.map(({ resource }) => resource);
    await Promise.all(
      jobs.map(({ resource, schedule = '', next = '' }) => {
        const own = [
          keys.jobRecord(resource),
          keys.lastTick(resource),
          keys.jobInstances(resource),
          keys.jobRuns(resource),
        ];
        return this.store.run(REGISTER_JOB, own, [clientId, schedule, next, JOB_KEEP_MS]);
      }),
    );
    // Not before: a name in the index whose job is not known is dropped from it.
    await this.#index('add', INDEX_KEEP_MS, names);
    return this.look(names, 0);
  }

  async list(): Promise<string[]> {
    return (await this.store.run(INDEX_JOBS, [this.store.keys.jobIndex()], ['list'])) as string[];
  }

  /** Drops names from the index of which nothing is left. No caller waits for it. */
  #forget(states: readonly JobState[]): void {
    if (states.length === 0) return;
    const names = states.map(({ resource }) => resource);
    this.#index('drop', states[0]!.now, names).catch(() => {});
  }

  async #index(what: 'add' | 'drop', number: number, names: readonly string[]): Promise<void> {
    const index = this.store.keys.jobIndex();
    const sent = chunks(names, NAMES_PER_SCRIPT).map((some) =>
      this.store.run(INDEX_JOBS, [index], [what, number, ...some]),
    );
    await Promise.all(sent);
  }
}

/** @param at where the texts of this job begin in the reply */
function readState(resource: string, reply: readonly [number, ...string[]], at: number, limit: number): JobState {
  const [now] = reply;
  const facts = (reply[at] as string).split('\n');
  const number = (index: number): number | undefined => finite(facts[index]);
  const pause = readPause(reply[at + 1] as string);
  const stored = readRuns(reply[at + 2] as string);
  const { runs, running } = readHistory(stored, number(2), limit);
  const [last, next, lastSuccessAt] = [number(1), number(4), number(5)];
  const owed = facts[7] ? readOwed(facts[8]!) : undefined;
  const schedule = facts.slice(10).join('\n');
  // One by one: a list has a thousand of these, and spreads take far more memory.
  const state: { -readonly [K in keyof JobState]: JobState[K] } = {
    resource,
    isKnown: facts[0] !== '' || pause !== undefined || stored.length > 0,
    now,
    missed: number(6) ?? 0,
    runs,
    instances: readInstances(reply[at + 3] as string),
    instanceCount: number(3) ?? 0,
  };
  if (schedule !== '') state.schedule = schedule;
  if (next !== undefined) state.next = next;
  if (last !== undefined) state.last = last;
  if (lastSuccessAt !== undefined) state.lastSuccessAt = lastSuccessAt;
  if (owed && owed.until >= now) state.owed = owed;
  if (pause) state.pause = pause;
  if (facts[9]) state.timedPauses = readTimedPauses(facts[9]);
  if (running) state.running = running;
  return state;
}

function readRuns(text: string): StoredRun[] {
  if (text === '') return [];
  return text
    .split('\n')
    .map(readRun)
    .filter((run): run is StoredRun => run !== undefined);
}

function readInstances(text: string): JobState['instances'] {
  if (text === '') return [];
  const lines = text.split('\n');
  return Array.from({ length: lines.length >> 1 }, (_, index) => {
    return { instanceId: lines[2 * index]!, seenAt: Number(lines[2 * index + 1]) };
  });
}

function finite(text: string | undefined): number | undefined {
  return text && /^\d+$/.test(text) ? Number(text) : undefined;
}
