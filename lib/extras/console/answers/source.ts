import { InvalidLockOptionsError, LockShutdownError, LockUnavailableError } from '../../../kernel/api/errors.js';
import type { LockExplanation } from '../../../features/fleet/core/explain/explanation.js';
import { SEEN_RUNS, type SeenJob } from '../../../features/fleet/core/findings/finding.js';
import { survey, type Survey } from '../../../features/fleet/core/findings/survey.js';
import { remedyOf } from '../../../features/fleet/core/findings/redis-findings.js';
import type { LockHealth } from '../../../features/fleet/core/health/health-checks.js';
import { JobNotFoundError } from '../../../features/jobs/core/job-info.js';
import type { JobRecords } from '../../../features/jobs/core/job-records.js';
import type { LockClient } from '../../../kernel/lock-client.js';
import { type Clock, SYSTEM_CLOCK } from '../../../kernel/util/clock.js';
import { pause } from '../../../kernel/util/promises.js';
import { leadershipsOf, type LeadershipState } from '../../views/leaders.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { Refusal } from './reply.js';

/** A lock service of the console. */
export interface ConsoleSource {
  readonly service: string;
  readonly client: LockClient;
  /** `null` where its store remembers no jobs. */
  readonly jobs: JobRecords | null;
  /** The names of the jobs of this process. */
  ownJobs(): ReadonlySet<string>;
  /** The default length of its leases. */
  readonly leaseMs: number | null;
  /** Resolves to true if its user may only look, so that it can try no lock. */
  mayOnlyLook?(): Promise<boolean>;
}

/** All viewers of a process share a look for this long. */
const SHARED_MS = 1_000;
/** The time that instances have to answer. */
const ROLL_MS = 500;
/** A page that shows an error soon is better than one that waits. */
const MAX_MS = 3_000;
const MAX_SHARED = 200;
/** The distance between two looks at a lock that are compared. */
const LOOKS_APART_MS = { least: 900, most: 30_000 };

interface Look {
  readonly at: number;
  readonly explanation: LockExplanation;
}

/** The looks at one lock service: what several viewers ask for within a second is asked once. */
export class SnapshotCache {
  readonly #shared = new Map<string, { readonly at: number; readonly answer: Promise<unknown> }>();
  readonly #earlier = new Map<string, { last: Look; before?: Look }>();
  /** The minimum by which the clock of Redis is ahead of the clock of this process. */
  #aheadMs: number | undefined;

  constructor(
    readonly source: ConsoleSource,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  /** Now, by the clock of Redis, as far as it is known. */
  now(): number {
    return this.clock.wallNow() + (this.#aheadMs ?? 0);
  }

  /** The reports of all instances. @param prefix of the resources that matter, where there are more than an answer can list */
  roll(prefix = ''): Promise<FleetReport> {
    return this.#share(`roll ${prefix}`, async () => {
      const fleet = await this.source.client.report({ prefix, timeoutMs: ROLL_MS });
      const ahead = fleet.askedAt - this.clock.wallNow();
      // The answer took a while. The fastest one is the most precise, until a clock is set.
      const known = this.#aheadMs ?? -Infinity;
      if (ahead > known || known - ahead > 2 * MAX_MS) this.#aheadMs = ahead;
      return fleet;
    });
  }

  /** The same, where the lists of all instances are cut: of resources that begin so. */
  async rollAbout(prefix: string): Promise<FleetReport> {
    const roll = await this.roll();
    return prefix !== '' && roll.instances.some(({ more }) => more.held + more.waiting > 0) ? this.roll(prefix) : roll;
  }

  health(): Promise<LockHealth> {
    return this.#share('health', () => this.source.client.health());
  }

  /** All that the first page shows. */
  survey(): Promise<Survey> {
    // Throws if the command line has no connection, so it is read before anything is asked that would then reject unheard.
    const hasJobs = Boolean(this.source.jobs);
    return this.#share('survey', () =>
      survey({
        fleet: this.roll(),
        health: this.health(),
        jobs: hasJobs ? this.jobs() : undefined,
        mayOnlyLook: this.source.mayOnlyLook?.(),
      }),
    );
  }

  /** The records of jobs. @throws Refusal where there are none */
  get records(): JobRecords {
    const { jobs } = this.source;
    if (jobs) return jobs;
    throw new Refusal('NOT_SUPPORTED', 'The store of these locks keeps no records of jobs.');
  }

  /** All jobs, with their newest runs. */
  jobs(): Promise<readonly SeenJob[]> {
    return this.#share('jobs', () => this.records.listWithRuns(this.source.ownJobs(), SEEN_RUNS));
  }

  /** One job, and its newest runs. */
  job(name: string, runs: number): Promise<SeenJob> {
    return this.#share(`job ${name}`, async () => {
      const own = this.source.ownJobs();
      const [job, history] = await Promise.all([this.records.get(name, own), this.records.history(name, own, runs)]);
      return { job, runs: history };
    });
  }

  leaderships(): Promise<{ readonly at: number; readonly all: readonly LeadershipState[] }> {
    return this.#share('leaders', async () => {
      const all = await leadershipsOf(this.source.client, await this.roll());
      return { at: this.now(), all };
    });
  }

  /** Explains a resource, with an earlier look at it, if there was one lately. */
  explain(resource: string): Promise<{
    readonly at: number;
    readonly seen: LockExplanation;
    readonly before: LockExplanation | undefined;
  }> {
    return this.#share(`explain ${resource}`, async () => {
      const lookAround = () => this.rollAbout(resource);
      const explanation = await this.source.client.operators.explain(resource, {}, lookAround);
      const look = { at: this.clock.now(), explanation };
      const earlier = this.#earlier.get(resource);
      const known = earlier && look.at - earlier.last.at < LOOKS_APART_MS.most ? earlier.last : undefined;
      const before = known && look.at - known.at >= LOOKS_APART_MS.least ? known : earlier?.before;
      this.#earlier.delete(resource);
      this.#earlier.set(resource, { last: look, ...(before && { before }) });
      if (this.#earlier.size > MAX_SHARED) this.#earlier.delete(this.#earlier.keys().next().value!);
      return { at: this.now(), seen: explanation, before: before?.explanation };
    });
  }

  /** After an action, the next look sees what it has changed. */
  forget(): void {
    this.#shared.clear();
  }

  /** The refusal for an error of the locks. If Redis is the cause, it has the same cause and remedy as the findings. */
  async refusalOf(error: unknown): Promise<unknown> {
    if (!(error instanceof LockUnavailableError) || error instanceof LockShutdownError) return refusalFor(error);
    const [problem] = (await this.health()).problems;
    const reason = problem ? `${problem.message} ${remedyOf(problem.code)}` : 'Redis did not answer in time.';
    return new Refusal('REDIS_UNAVAILABLE', `${reason} Held locks expire with their leases.`);
  }

  #share<T>(key: string, look: () => Promise<T>): Promise<T> {
    const now = this.clock.now();
    const shared = this.#shared.get(key);
    if (shared && now < shared.at + SHARED_MS) return shared.answer as Promise<T>;
    for (const [each, { at }] of this.#shared) if (now >= at + SHARED_MS) this.#shared.delete(each);
    const answer = this.#within(look());
    if (this.#shared.size < MAX_SHARED) this.#shared.set(key, { at: now, answer });
    answer.catch(() => {});
    return answer;
  }

  /** @throws LockUnavailableError if it takes too long */
  async #within<T>(looking: Promise<T>): Promise<T> {
    const over = new AbortController();
    const late = pause(this.clock, MAX_MS, over.signal).then((why) => {
      if (why === 'time') throw new LockUnavailableError('', 'poll the instances', 'failed', new Error('late'));
      return undefined as never;
    });
    late.catch(() => {});
    try {
      return await Promise.race([looking, late]);
    } finally {
      looking.catch(() => {});
      over.abort();
    }
  }
}

/** The refusal for an error of the locks. Messages that may name an address are not passed on. */
function refusalFor(error: unknown): unknown {
  if (error instanceof JobNotFoundError) return new Refusal('UNKNOWN_JOB', error.message);
  if (error instanceof LockShutdownError) return new Refusal('SHUTTING_DOWN', 'The application is shutting down.');
  if (!(error instanceof InvalidLockOptionsError)) return error;
  const { option, message } = error;
  return option === 'store' ? new Refusal('NOT_SUPPORTED', message) : new Refusal('BAD_REQUEST', message);
}
