import { LockUnavailableError } from '../../../kernel/api/errors.js';
import type { LockStoreError } from '../../../kernel/store/store-error.js';
import { chunks } from '../../../kernel/util/objects.js';
import type { Random } from '../../../kernel/util/clock.js';
import type { Watched } from './watched-job.js';
import type { JobState } from './job-state.js';

/** A look or a registration that has this many jobs takes about a millisecond of Redis. */
const JOBS_AT_ONCE = 100;
/** So many jobs are asked for by themselves, to find out whether the store answers for any. */
const MAX_TRIED = 8;

/** Some jobs of one process, and the command that asks for any number of them. */
export interface Question {
  readonly jobs: readonly Watched[];
  readonly askFor: (some: readonly Watched[]) => Promise<readonly JobState[]>;
}

/**
 * One poll of the jobs of a process, in one request. If that fails, it asks for each by itself: a key of one job may be
 * of another type, out of reach of the Redis user, or on an unreachable server of a cluster.
 */
export class JobPoll {
  /** The jobs that the store does not answer for, and why. */
  readonly failed = new Map<Watched, unknown>();
  readonly #answered = new Set<Watched>();
  /** A refusal is an answer too. */
  #isAnswering = false;
  /** `true` once the store has answered some and then stopped: the next poll asks for the rest. */
  #isOver = false;

  /** @param account uses the answer for one job */
  constructor(
    private readonly account: (watched: Watched, state: JobState) => Promise<void>,
    private readonly random: Random,
  ) {}

  /** @throws LockUnavailableError if the store answers for none of them */
  async ask(questions: readonly Question[]): Promise<void> {
    const groups = questions.flatMap(({ jobs, askFor }) =>
      chunks(jobs, JOBS_AT_ONCE).map((some) => ({ jobs: some, askFor })),
    );
    for (const [index, group] of groups.entries()) {
      const [left] = this.#unasked([group]);
      if (!left) continue;
      const failure = await this.#send([left]);
      if (!failure) continue;
      if (!this.#isAnswering) {
        await this.#send(this.#some(this.#unasked(groups.slice(index)).flatMap(each)));
        if (!this.#isAnswering) throw failure.reason;
      }
      await this.#send(this.#unasked([group]).flatMap(each));
    }
  }

  /**
   * Asks again for jobs that the store has not answered for: for a few, and for more as long as it answers for one
   * of the last few. Those come first whose turn was the longest time ago.
   */
  async askAgain(questions: readonly Question[]): Promise<void> {
    const turnOf = ({ jobs }: Question): number => jobs[0]!.lastFailedAt!;
    const single = questions.flatMap(each).sort((one, other) => turnOf(one) - turnOf(other));
    for (const some of chunks(single, MAX_TRIED)) {
      await this.#send(some);
      if (!some.some(({ jobs }) => this.#answered.has(jobs[0]!))) return;
    }
  }

  /** @returns why the store did not answer one of these questions */
  async #send(questions: readonly Question[]): Promise<{ readonly reason: unknown } | undefined> {
    if (this.#isOver) return undefined;
    const replies = await Promise.allSettled(questions.map(({ jobs, askFor }) => askFor(jobs)));
    let failure: PromiseRejectedResult | undefined;
    for (const [index, { jobs }] of questions.entries()) {
      const reply = replies[index]!;
      if (reply.status === 'rejected') {
        failure = reply;
        this.#isAnswering ||= isRefused(reply.reason);
        if (jobs.length === 1) this.failed.set(jobs[0]!, reply.reason);
      } else await this.#accountAll(jobs, reply.value);
    }
    return failure;
  }

  async #accountAll(jobs: readonly Watched[], states: readonly JobState[]): Promise<void> {
    this.#isAnswering = true;
    for (const [index, watched] of jobs.entries()) {
      if (this.#isOver) return;
      this.#answered.add(watched);
      try {
        await this.account(watched, states[index]!);
      } catch (error) {
        this.failed.set(watched, error);
        this.#isOver = !isRefused(error);
      }
    }
  }

  #unasked(questions: readonly Question[]): Question[] {
    return questions.flatMap(({ jobs, askFor }) => {
      const left = jobs.filter((watched) => !this.#answered.has(watched) && !this.failed.has(watched));
      return left.length > 0 ? [{ jobs: left, askFor }] : [];
    });
  }

  /** At random: the next look may find others that the store answers for. */
  #some<T>(all: T[]): T[] {
    const some: T[] = [];
    while (some.length < MAX_TRIED && all.length > 0) {
      some.push(...all.splice(Math.floor(this.random.fraction() * all.length), 1));
    }
    return some;
  }
}

function each({ jobs, askFor }: Question): Question[] {
  return jobs.map((watched) => ({ jobs: [watched], askFor }));
}

function isRefused(error: unknown): boolean {
  return error instanceof LockUnavailableError && (error.cause as LockStoreError).failure === 'refused';
}
