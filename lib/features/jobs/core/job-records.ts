import { JOB_PREFIX, jobResource } from '../../../kernel/api/resource.js';
import { ask } from '../../../kernel/store/ask.js';
import { DIFFER_MS, type JobStore } from './job-store.js';
import type { LockEventOf } from '../../../kernel/events/events.js';
import type { Runtime } from '../../../kernel/holding/runtime.js';
import { chunks, defined } from '../../../kernel/util/objects.js';
import { type JobInfo, JobNotFoundError, type JobRun, scheduleOf } from './job-info.js';
import { type Operator, OperatorRequests } from './operator-requests.js';
import type { JobPause, JobState } from './job-state.js';

/** The number of jobs that one command reads: about a millisecond of Redis. */
const JOBS_AT_ONCE = 100;
/** So many of these commands are on their way at once: Redis looks for the next jobs while the last ones are read. */
const LOOKS_AT_ONCE = 4;
/** So many instances a list names of each job. */
const MAX_LISTED = 10;
const MAX_INSTANCES = 1_000;
/** An instance that came to no tick for this long by another schedule may have been replaced. */
const OTHER_SHOWN_MS = 2 * 24 * 60 * 60 * 1000;
const BY = /^manual:\S+ by ([^]+)$/;

/** The records of the jobs of all applications with the same prefix. */
export class JobRecords {
  /** Requests of operators to the instances. */
  readonly requests: OperatorRequests;

  constructor(
    private readonly runtime: Runtime,
    private readonly store: JobStore,
  ) {
    this.requests = new OperatorRequests(runtime, store);
  }

  /** Why there are no records; see {@link JobStore.refusal}. */
  get refusal(): string | undefined {
    return this.store.refusal;
  }

  /** All jobs that are known, by name. @param own the names of the jobs of this instance, which may not be known yet */
  async list(own: ReadonlySet<string>): Promise<JobInfo[]> {
    return (await this.listWithRuns(own, 1)).map(({ job }) => job);
  }

  /** The same, with the newest runs of each, the newest first. */
  async listWithRuns(
    own: ReadonlySet<string>,
    limit: number,
  ): Promise<{ readonly job: JobInfo; readonly runs: readonly JobRun[] }[]> {
    const names = [...new Set([...own, ...(await this.#names('list jobs'))])].sort();
    const parts = chunks(names, JOBS_AT_ONCE);
    const states: JobState[][] = [];
    const rest = parts.entries();
    const lookOn = async (): Promise<void> => {
      for (const [index, some] of rest) states[index] = await this.#look(some, limit, MAX_LISTED, 'list jobs');
    };
    await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, lookOn));
    // The index remembers jobs for longer than their records last.
    return states.flat().flatMap((state, index) => {
      const name = names[index]!;
      if (!state.isKnown && !own.has(name)) return [];
      return { job: this.#infoOf(name, state, own), runs: state.runs.map(runOf) };
    });
  }

  /** @throws JobNotFoundError when it is not known */
  async get(name: string, own: ReadonlySet<string>): Promise<JobInfo> {
    return this.#infoOf(name, await this.#known(name, own, 1, 'get the job', MAX_INSTANCES), own);
  }

  async history(name: string, own: ReadonlySet<string>, limit: number): Promise<JobRun[]> {
    const { runs } = await this.#known(name, own, limit, 'read the history of');
    return runs.map(runOf);
  }

  /** @returns how long the run of a job has lasted, if later ticks did not run because it has not ended */
  async overlapOf(resource: string): Promise<{ readonly ranMs: number; readonly lastAt: number } | undefined> {
    if (this.store.refusal !== undefined) return undefined;
    const [state] = await this.store.look([resource], 1);
    const lastAt = skippedAt(state!);
    return lastAt === undefined ? undefined : { ranMs: state!.now - state!.running!.startedAt, lastAt };
  }

  /** Pauses it, and reports that. @returns the pause that stood before */
  async pause(name: string, own: ReadonlySet<string>, pause: Omit<JobPause, 'at'>): Promise<JobPause | undefined> {
    const { resource } = await this.#known(name, own, 1, 'pause');
    const before = await ask(this.runtime, () => this.store.pause(resource, pause), 'pause', resource);
    this.tell(name, { command: 'pause', ...pause });
    return before;
  }

  /** Ends its pause, and reports that. @returns the pause that stood */
  async resume(name: string, own: ReadonlySet<string>, operator: Operator = {}): Promise<JobPause | undefined> {
    const { resource } = await this.#known(name, own, 1, 'resume');
    const before = await ask(this.runtime, () => this.store.resume(resource), 'resume', resource);
    if (before !== undefined) this.tell(name, { command: 'resume', ...operator });
    return before;
  }

  /** Reports a command of an operator in this process. */
  tell(job: string, told: Pick<LockEventOf<'jobCommand'>, 'command' | 'by' | 'reason' | 'until'>): void {
    const { command, by, reason, until } = told;
    const { service, groups } = this.runtime.observers;
    this.runtime.observers.emit({
      type: 'jobCommand',
      service,
      group: groups.of(job, job),
      job,
      command,
      ...defined({ by, reason, until }),
    });
  }

  /** Returns the error for a job without code here. If the store cannot be asked, the job counts as unknown. */
  async notHere(name: string, own: ReadonlySet<string>): Promise<JobNotFoundError> {
    try {
      const [state] = await this.#look([name], 0, MAX_INSTANCES, 'find the job');
      if (state?.isKnown) {
        return JobNotFoundError.elsewhere(
          name,
          this.#withoutThis(state).instances.map(({ instanceId }) => instanceId),
        );
      }
    } catch {
      // The message is about this instance, in any case.
    }
    return JobNotFoundError.unknown(name, 'This instance', [...own]);
  }

  #infoOf(name: string, state: JobState, own: ReadonlySet<string>): JobInfo {
    const isHere = own.has(name);
    return infoOf(name, isHere ? state : this.#withoutThis(state), isHere);
  }

  /** Leaves out this instance, which may have had the job, and has removed it. */
  #withoutThis(state: JobState): JobState {
    const { instanceId } = this.runtime.store;
    const instances = state.instances.filter(({ instanceId: instance }) => instance !== instanceId);
    const without = state.instances.length - instances.length;
    return without === 0 ? state : { ...state, instances, instanceCount: state.instanceCount - without };
  }

  async #known(
    name: string,
    own: ReadonlySet<string>,
    limit: number,
    operation: string,
    instances = 0,
  ): Promise<JobState> {
    const [state] = await this.#look([name], limit, instances, operation);
    if (state!.isKnown || own.has(name)) return state!;
    const names = await this.#names(operation).catch(() => []);
    throw JobNotFoundError.unknown(name, 'The fleet', [...new Set([...own, ...names])]);
  }

  #look(names: readonly string[], limit: number, instances: number, operation: string): Promise<JobState[]> {
    const resources = names.map(jobResource);
    const send = () => this.store.look(resources, limit, instances);
    return ask(this.runtime, send, operation, resources.length === 1 ? resources[0]! : '');
  }

  async #names(operation: string): Promise<string[]> {
    const resources = await ask(this.runtime, () => this.store.list(), operation, '');
    return resources.flatMap((resource) =>
      resource.startsWith(JOB_PREFIX) ? [resource.slice(JOB_PREFIX.length)] : [],
    );
  }
}

/** Returns when the last tick was due that did not run because the run before it had not ended. */
function skippedAt({ running, schedule, last, statedAt }: JobState): number | undefined {
  if (!running) return undefined;
  // The tick of an interval is no time, but its claims have the time of the last one.
  const [lastAt = 0, since] =
    schedule === undefined ? [statedAt, running.startedAt] : [last, Date.parse(running.tick) || running.startedAt];
  return lastAt > since ? lastAt : undefined;
}

function infoOf(name: string, state: JobState, isHere: boolean): JobInfo {
  const { schedule, next, missed, lastSuccessAt, pause, running, instances, instanceCount, other, now } = state;
  const [last] = state.runs;
  const info: { -readonly [K in keyof JobInfo]: JobInfo[K] } = { name, isHere, missed, instances, instanceCount };
  if (schedule !== undefined) Object.assign(info, scheduleOf(schedule));
  if (other && other.seenAt - other.since >= DIFFER_MS && now - other.seenAt < OTHER_SHOWN_MS) {
    const { schedule: text, instanceId, seenAt } = other;
    info.otherSchedule = { ...scheduleOf(text), instanceId, seenAt };
  }
  const pausedUntil = pause ? (pause.until ?? Infinity) : 0;
  // The instance that reported it may be gone since.
  if (next !== undefined && next > Math.max(now, pausedUntil)) info.nextDueAt = next;
  if (running) info.running = runOf(running);
  const skipped = skippedAt(state);
  if (skipped !== undefined) info.skippedAt = skipped;
  if (last) info.lastRun = runOf(last);
  if (lastSuccessAt !== undefined) info.lastSuccessAt = lastSuccessAt;
  if (pause) info.pause = pause;
  return info;
}

function runOf(run: JobState['runs'][number]): JobRun {
  const by = run.manual ? BY.exec(run.tick)?.[1] : undefined;
  return by === undefined ? run : { ...run, by };
}
