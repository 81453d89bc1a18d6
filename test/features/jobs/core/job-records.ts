import type {
  JobRegistration,
  JobStore,
  MissedReply,
  MissedNote,
} from '../../../../lib/features/jobs/core/job-store.js';
import { LockStoreError } from '../../../../lib/kernel/store/store-error.js';
import { catchUpTick, type JobState } from '../../../../lib/features/jobs/core/job-state.js';

interface JobRecord {
  schedule?: string | undefined;
  next?: number | undefined;
  last?: number;
  owed?: NonNullable<JobState['owed']> | undefined;
  isRunning: boolean;
  pause?: JobState['pause'];
  timedPauses?: JobState['timedPauses'];
}

/** The promises of a store about missed ticks. Shared by many processes. */
export class JobRecords {
  readonly byResource = new Map<string, JobRecord>();
  readonly commands: string[] = [];
  readonly noted: MissedNote[] = [];
  isAway = false;
  /** The store refuses every command for these. */
  readonly refused = new Set<string>();
  /** The server of these does not answer. */
  readonly away = new Set<string>();
  /** It does not answer when missed ticks of these are noted. */
  readonly unnoted = new Set<string>();
  refusals = 0;
  /** The next answer to `note` does not arrive. */
  losesAnswer = false;
  /** The last report, and its process. */
  #told: readonly unknown[] = [];

  constructor(readonly now: () => number) {}

  /** An instance has claimed a tick. */
  claim(resource: string, at: number): void {
    const record = this.byResource.get(resource)!;
    record.last = Math.max(record.last ?? 0, at);
  }

  /** The one who asks for an owed run gets it if no other process has. */
  takeOwed(resource: string, tick: string): boolean {
    const record = this.byResource.get(resource)!;
    const isOwed = record.owed?.tick === tick && this.now() <= record.owed.until;
    if (isOwed) record.owed = undefined;
    return isOwed;
  }

  /** The store as one process sees it. `isDead`: nothing that it sends arrives, and nothing is answered. */
  client(process: { isDead: boolean } = { isDead: false }): JobStore {
    const command = async <T>(name: string, execute: () => T): Promise<T> => {
      if (process.isDead) return new Promise<never>(() => {});
      this.commands.push(name);
      if (this.isAway) throw new LockStoreError('unknown', 'not connected to Redis');
      return execute();
    };
    const check = (...resources: string[]): void => {
      if (resources.some((resource) => this.away.has(resource))) throw new LockStoreError('unknown', 'no answer');
      const wrong = resources.find((resource) => this.refused.has(resource));
      if (wrong === undefined) return;
      this.refusals++;
      throw new LockStoreError('refused', `WRONGTYPE at a key of ${wrong}`);
    };
    const unused = (): Promise<never> => Promise.reject(new Error('not used here'));
    return {
      register: (jobs) =>
        command('register', () => {
          check(...jobs.map(({ resource }) => resource));
          return jobs.map((job) => this.#register(job));
        }),
      look: (resources) =>
        command('look', () => {
          check(...resources);
          return resources.map((resource) => this.#stateOf(resource));
        }),
      note: (missed) =>
        command('note', () => {
          check(missed.resource);
          if (this.unnoted.has(missed.resource)) throw new LockStoreError('unknown', 'no answer');
          const reply = this.#note(missed, process);
          if (!this.losesAnswer) return reply;
          this.losesAnswer = false;
          throw new LockStoreError('unknown', 'the connection was lost');
        }),
      claim: unused,
      end: unused,
      pause: unused,
      resume: unused,
      list: unused,
    };
  }

  #register({ resource, schedule, next }: JobRegistration): JobState {
    const record = this.byResource.get(resource);
    if (schedule !== undefined && (record === undefined || record.schedule !== schedule)) {
      this.byResource.set(resource, { schedule, next, last: this.now(), isRunning: false });
    }
    // Without a schedule, the record has none any more.
    else if (record && schedule === undefined) record.schedule = undefined;
    return this.#stateOf(resource);
  }

  #stateOf(resource: string): JobState {
    const record = this.byResource.get(resource);
    const { schedule, next, last, owed, isRunning, pause, timedPauses } = record ?? { isRunning: false };
    const run = { tick: 'x', startedAt: 0, instanceId: 'x', rerun: false, manual: false, catchUp: false };
    return {
      resource,
      isKnown: record !== undefined,
      now: this.now(),
      missed: 0,
      runs: [],
      instances: [],
      instanceCount: 0,
      ...(schedule !== undefined && { schedule }),
      ...(next !== undefined && { next }),
      ...(last !== undefined && { last }),
      ...(owed && { owed }),
      ...(pause && { pause }),
      ...(timedPauses && { timedPauses }),
      ...(isRunning && { running: run }),
    };
  }

  #note(missed: MissedNote, teller: object): MissedReply {
    const record = this.byResource.get(missed.resource);
    const owedBefore = record?.owed && { owed: record.owed };
    const { ticks, earlier } = missed;
    const last = ticks.at(-1)!;
    const span = { count: ticks.length + (earlier?.count ?? 0), first: earlier?.first ?? ticks[0]!, last };
    if (record?.schedule !== missed.schedule || record.last !== missed.after) {
      const isSame = this.#told[0] === teller && this.#told[1] === missed.after && this.#told[2] === last;
      return isSame
        ? { status: 'noted', missed: { ...span, ticks }, ...owedBefore }
        : { status: 'stale', ...owedBefore };
    }
    this.#told = [teller, missed.after, last];
    this.noted.push(missed);
    record.last = last;
    if (missed.runWithinMs !== undefined && last + missed.runWithinMs >= this.now()) {
      record.owed = { ...span, tick: catchUpTick(last), until: last + missed.runWithinMs };
    }
    return { status: 'noted', missed: { ...span, ticks }, ...(record.owed && { owed: record.owed }) };
  }
}
