import { chunks } from '../../../kernel/util/objects.js';
import type { OperatorRequest } from '../../../kernel/store/message-health.js';
import {
  DIFFER_MS,
  JOB_KEEP_MS,
  type JobRegistration,
  type JobStore,
  type MissedReply,
  type MissedNote,
  MAX_TIMED_PAUSES,
  type RunEnd,
  type OperatorRequestChange,
} from '../core/job-store.js';
import {
  type ClaimChange,
  type ClaimEnd,
  type ClaimNode,
  LAST_TICK_KEEP_MS,
  type Tick,
  type TickClaim,
  type DueWindow,
  type TickReply,
  type ClaimMetadata,
} from '../core/job-claims.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { sealOfOwner } from '../../../redis/grant-seal.js';
import { readOperator, readOther, readOwed, readPause, readSpan, readStates, writeOperator } from './job-entries.js';
import { encodeField, encodeResource, type Keys } from '../../../redis/keys.js';
import type { ScriptLockStore } from '../../../redis/script-lock-store.js';
import * as SCRIPTS from '../../../redis/script/scripts.js';
import { catchUpOf, type JobPause, type JobState } from '../core/job-state.js';

/** See lua/note-missed.lua. */
type NotedReply = [
  status: string,
  count: number,
  first: number,
  last: number,
  owed: string,
  ticks: number[],
  isDown: number | undefined,
];

/** The time for which the index of all jobs outlives the last registration. */
const INDEX_KEEP_MS = 400 * 24 * 60 * 60 * 1000;
/** The number of jobs that one script reads, if they can be in one. */
const JOBS_PER_SCRIPT = 50;
/** So many names are added to the index, or dropped from it, by one script. */
const NAMES_PER_SCRIPT = 1_000;
/**
 * The job records in Redis. Beside the lock of each: a key for each claimed tick, a few for the record, and an index of
 * all. They expire by themselves.
 */
export class RedisJobStore implements JobStore, ClaimNode {
  constructor(private readonly store: ScriptLockStore) {}

  async claim({ resource, tick }: Tick, claim: TickClaim): Promise<TickReply> {
    const { keys } = this.store;
    const { owner, leaseMs, claimTtlMs, overlap, takeOver, maxReruns = '', due, note } = claim;
    const lock = keys.lock(resource);
    const known = [lock, keys.tick(resource, tick), keys.fence(lock), keys.lastTick(resource)];
    const args = [owner.id, leaseMs, claimTtlMs, overlap, takeOver, ...dueArgs(due), maxReruns];
    const [status, value, flag, text, isNew, other] = await this.store.run<SCRIPTS.ClaimReply>(
      SCRIPTS.CLAIM_TICK,
      note ? [...known, ...jobKeys(keys, resource)] : known,
      note ? [...args, ...noteArgs(note, tick)] : args,
    );
    switch (status) {
      case 'granted':
        return {
          status,
          fencingToken: value,
          attempt: flag,
          ...(text && { missed: readSpan(text) }),
          ...(isNew === 1 && { isNew: true }),
          ...(other && { other: readOther(other) }),
        };
      case 'claimed':
        return { status, ttlMs: value };
      case 'otherDate':
        return { status, registered: value };
      case 'crashed':
        return { status, attempts: value };
      case 'taken':
        return { status, ttlMs: value, isBegun: flag === 1 };
      case 'late':
      case 'early':
        return { status, lateMs: value };
      case 'paused':
        return { status, ...readOperator(text ?? ''), ...(value > 0 && { until: value }) };
      case 'gap':
        return { status, last: value, lateMs: flag };
      default:
        return { status };
    }
  }

  async end(
    owner: LockOwner,
    { claim, run }: { readonly claim?: ClaimEnd; readonly run?: RunEnd },
    lazily?: boolean,
  ): Promise<boolean> {
    if (claim) await this.#endClaim(owner, claim);
    return run ? this.#endRun(owner, run, lazily) : true;
  }

  async #endClaim({ resource, id }: LockOwner, { tick, to, claimTtlMs }: ClaimEnd): Promise<void> {
    const { keys } = this.store;
    const claim = keys.tick(resource, tick);
    // A run that was granted and never began is taken out of the history.
    const own = to === 'returned' ? [claim, keys.jobRuns(resource), keys.jobRecord(resource)] : [claim];
    const entry = to === 'returned' ? [encodeField(tick), catchUpOf(tick) ?? ''] : [];
    await this.store.run(SCRIPTS.FINISH_TICK, own, [id, claimTtlMs, to, ...entry]);
  }

  #endRun({ resource, id }: LockOwner, run: RunEnd, lazily?: boolean): Promise<boolean> {
    const { keys } = this.store;
    const { fencingToken, outcome, errorName, errorCode, errorMessage } = run;
    const texts = [errorName, errorCode, errorMessage].map(encodeField).join(' ');
    const own = [keys.jobRuns(resource), keys.jobRecord(resource)];
    return this.store.passOn(SCRIPTS.END_RUN, resource, [id, fencingToken, outcome, texts], lazily, own);
  }

  async exchange({ resource, tick }: Tick, change: ClaimChange): Promise<string | null> {
    const { keys } = this.store;
    const { owner, to = '', from = '', force, drop = '', claimTtlMs = '', mostMs = '', due, isJudged } = change;
    const standing = await this.store.run<string | null>(
      SCRIPTS.EXCHANGE_CLAIM,
      [keys.tick(resource, tick), keys.lastTick(resource)],
      [to, from, force ? 1 : 0, drop, claimTtlMs, ...dueArgs(due), due && isJudged ? 1 : 0, mostMs],
    );
    const seal = sealOfOwner(owner);
    return standing?.startsWith(seal) ? owner + standing.slice(seal.length) : standing;
  }

  async note(missed: MissedNote): Promise<MissedReply> {
    const { keys, clientId } = this.store;
    const { resource, schedule, after, ticks, earlier, historySize, runWithinMs = '', next = '' } = missed;
    const terms = [schedule, after, historySize, runWithinMs, next, JOB_KEEP_MS, LAST_TICK_KEEP_MS, clientId];
    const reply = await this.store.run<unknown>(
      SCRIPTS.NOTE_MISSED,
      [keys.lastTick(resource), ...jobKeys(keys, resource)],
      [...terms, earlier?.count ?? 0, earlier?.first ?? '', earlier?.last ?? '', ...ticks],
    );
    const [status, count, first, last, text, counted, isDown] = reply as NotedReply;
    const owed = readOwed(text);
    if (status === 'stale') return { status, ...(owed && { owed }) };
    return {
      status: 'noted',
      ...(count > 0 && { missed: { count, first, last, ticks: counted } }),
      ...(isDown === 1 && { afterStop: true }),
      ...(owed && { owed }),
    };
  }

  async look(resources: readonly string[], limit: number, instances = 0): Promise<JobState[]> {
    const { keys } = this.store;
    const size = this.store.isCluster ? 1 : JOBS_PER_SCRIPT;
    const states = chunks(resources, size).map(async (some) => {
      const all = some.flatMap((resource) => keys.ofJob(resource));
      const looked = readStates(some, await this.store.run<unknown>(SCRIPTS.LOOK_JOBS, all, [limit, instances]), limit);
      this.#forget(looked.filter(({ isKnown }) => !isKnown));
      return looked;
    });
    return (await Promise.all(states)).flat();
  }

  async pause(resource: string, { until, ...operator }: Omit<JobPause, 'at'>): Promise<JobPause | undefined> {
    return this.#pause(resource, 'pause', until, writeOperator(operator));
  }

  resume(resource: string): Promise<JobPause | undefined> {
    return this.#pause(resource, 'resume');
  }

  async #pause(resource: string, what: string, until = 0, operator = ''): Promise<JobPause | undefined> {
    const { keys } = this.store;
    const own = [keys.jobPause(resource), keys.jobRecord(resource), keys.lastTick(resource)];
    const terms = [what, until, operator, JOB_KEEP_MS, MAX_TIMED_PAUSES];
    const standing = readPause((await this.store.run(SCRIPTS.PAUSE_JOB, own, terms)) as string);
    if (what === 'pause') await this.#index('add', INDEX_KEEP_MS, [resource]);
    return standing;
  }

  async request({ resource, id }: OperatorRequest, change: OperatorRequestChange): Promise<string> {
    const { keys, database } = this.store;
    const { from = '', to = '', ttlMs = 1, tells } = change;
    const message = `request ${id} ${encodeResource(resource)}`;
    const args = [from, to, ttlMs, tells ? keys.rollChannel(database) : '', message];
    return (await this.store.run(SCRIPTS.CHANGE_REQUEST, [keys.request(resource, id)], args)) as string;
  }

  async register(jobs: readonly JobRegistration[]): Promise<JobState[]> {
    const { keys, clientId } = this.store;
    const names = jobs.map(({ resource }) => resource);
    await Promise.all(
      jobs.map(({ resource, schedule = '', next = '', date }) => {
        const args = [clientId, schedule, next, JOB_KEEP_MS, '', date?.at ?? '', date?.staysMs ?? ''];
        return this.store.run(SCRIPTS.REGISTER_JOB, registeredKeys(keys, resource), args);
      }),
    );
    // Not before: a name in the index whose job is not known is dropped from it.
    await this.#index('add', INDEX_KEEP_MS, names);
    return this.look(names, 0);
  }

  async leave(resources: readonly string[]): Promise<void> {
    const { keys, clientId } = this.store;
    // By a script that Redis knows: no time is left to send the text of another one.
    const send = (resource: string): Promise<unknown> =>
      this.store.run(SCRIPTS.REGISTER_JOB, registeredKeys(keys, resource), [clientId, '', '', JOB_KEEP_MS, 'leave']);
    await Promise.all(resources.map(send));
  }

  async list(): Promise<string[]> {
    return (await this.store.run(SCRIPTS.INDEX_JOBS, [this.store.keys.jobIndex()], ['list'])) as string[];
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
      this.store.run(SCRIPTS.INDEX_JOBS, [index], [what, number, ...some]),
    );
    await Promise.all(sent);
  }
}

function dueArgs(due: DueWindow | undefined): readonly (string | number)[] {
  return due ? [due.at, due.earlyMs, due.lateMs, LAST_TICK_KEEP_MS] : ['', '', '', ''];
}

function registeredKeys(keys: Keys, resource: string): string[] {
  return [keys.jobRecord(resource), keys.lastTick(resource), keys.jobInstances(resource), keys.jobRuns(resource)];
}

function jobKeys(keys: Keys, resource: string): string[] {
  return [keys.jobRuns(resource), keys.jobRecord(resource), keys.jobPause(resource), keys.jobInstances(resource)];
}

function noteArgs(
  { kind, historySize, schedule, previous, next, isDate }: ClaimMetadata,
  tick: string,
): (string | number)[] {
  const before = kind === 'catchUp' ? catchUpOf(tick) : schedule === undefined ? undefined : previous;
  return [
    kind,
    historySize,
    schedule ?? '',
    before ?? '',
    next ?? '',
    JOB_KEEP_MS,
    encodeField(tick),
    DIFFER_MS,
    isDate ? 1 : 0,
  ];
}
