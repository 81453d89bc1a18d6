import { InvalidLockOptionsError, LockShutdownError, LockUnavailableError } from '../../../kernel/api/errors.js';
import type { LockExplanation } from '../../../features/fleet/core/explain/explanation.js';
import type { LockHealth } from '../../../features/fleet/core/health/health-checks.js';
import { type JobInfo, JobNotFoundError, type JobRun } from '../../../features/jobs/core/job-info.js';
import type { JobRecords } from '../../../features/jobs/core/job-records.js';
import type { LockClient } from '../../../kernel/lock-client.js';
import { type Clock, SYSTEM_CLOCK } from '../../../kernel/util/clock.js';
import { pause } from '../../../kernel/util/promises.js';
import { leadershipsOf, type SeenLeadership } from '../../views/leaders.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { Refusal } from './reply.js';

/** A lock service that the console shows. */
export interface ConsoleSource {
  readonly service: string;
  readonly client: LockClient;
  /** `null` where its store remembers no jobs. */
  readonly jobs: JobRecords | null;
  /** The names of the jobs of this process. */
  ownJobs(): ReadonlySet<string>;
  /** How long its leases are where a call does not say it. */
  readonly leaseMs: number | null;
  /** Whether its user may only look, so that it can try no lock. */
  mayOnlyLook?(): Promise<boolean>;
}

/** All viewers of a process share a look for this long: an instance answers once in it. */
const SHARED_MS = 1_000;
/** How long instances have to answer. */
const ROLL_MS = 500;
/** A page that is told in time that Redis is away is better than one that waits. */
const MAX_MS = 3_000;
const MAX_SHARED = 200;
/** So many runs of each job a list shows. */
const SHOWN_RUNS = 14;
/** Two looks at a lock are compared that are so far apart. */
const LOOKS_APART_MS = { least: 900, most: 30_000 };

const REFUSES =
  'Redis rejects commands of the console. Run npx nestjs-redis-lock doctor to see which right is missing.';
const AWAY =
  'Redis cannot be reached, or does not answer. Held locks expire with their leases; new ones are unavailable.';

/** A leadership, and how often another term began since this process looks. */
interface SeenTerm extends SeenLeadership {
  readonly transitions: number;
  readonly lookedAtSince: number;
}

interface Look {
  readonly at: number;
  readonly explanation: LockExplanation;
}

/** Looks at one lock service. What several viewers ask for within a second is asked once. */
export class SnapshotCache {
  readonly #shared = new Map<string, { readonly at: number; readonly answer: Promise<unknown> }>();
  readonly #terms = new Map<string, { token: number | undefined; transitions: number; since: number }>();
  readonly #earlier = new Map<string, { last: Look; before?: Look }>();
  /** By how much the clock of Redis is ahead of that of this process, at least. */
  #aheadMs: number | undefined;

  constructor(
    readonly source: ConsoleSource,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  /** Now, by the clock of Redis, as far as it is known. */
  now(): number {
    return Date.now() + (this.#aheadMs ?? 0);
  }

  /** What all instances say. @param prefix of the resources that matter, where there are more than an answer can list */
  roll(prefix = ''): Promise<FleetReport> {
    return this.#share(`roll ${prefix}`, async () => {
      const fleet = await this.source.client.report({ prefix, timeoutMs: ROLL_MS });
      const ahead = fleet.askedAt - Date.now();
      // The answer took a while. That which took the shortest time is the nearest to the truth, until a clock is set.
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

  health(): Promise<{ readonly health: LockHealth; readonly mayOnlyLook: boolean }> {
    return this.#share('health', async () => {
      const { source } = this;
      const [health, mayOnlyLook = false] = await Promise.all([source.client.health(), source.mayOnlyLook?.()]);
      return { health, mayOnlyLook };
    });
  }

  /** The records of jobs. @throws Refusal where there are none */
  get records(): JobRecords {
    const { jobs } = this.source;
    if (jobs) return jobs;
    throw new Refusal('NOT_SUPPORTED', 'The store of these locks keeps no records of jobs.');
  }

  /** All jobs, with their newest runs. */
  jobs(): Promise<readonly { readonly job: JobInfo; readonly runs: readonly JobRun[] }[]> {
    return this.#share('jobs', () => this.records.listWithRuns(this.source.ownJobs(), SHOWN_RUNS));
  }

  /** One job, and its newest runs. */
  job(name: string, runs: number): Promise<{ readonly job: JobInfo; readonly runs: readonly JobRun[] }> {
    return this.#share(`job ${name}`, async () => {
      const own = this.source.ownJobs();
      const [job, history] = await Promise.all([this.records.get(name, own), this.records.history(name, own, runs)]);
      return { job, runs: history };
    });
  }

  /** Who leads, and how often that has changed while this process has looked. */
  leaderships(): Promise<{ readonly at: number; readonly all: readonly SeenTerm[] }> {
    return this.#share('leaders', async () => {
      const found = await leadershipsOf(this.source.client, await this.roll());
      return { at: this.now(), all: found.map((each) => ({ ...each, ...this.#countTerms(each) })) };
    });
  }

  #countTerms({ name, fencingToken: token }: SeenLeadership): { transitions: number; lookedAtSince: number } {
    const known = this.#terms.get(name) ?? { token, transitions: 0, since: this.now() };
    if (token !== undefined && token !== known.token) {
      if (known.token !== undefined) known.transitions++;
      known.token = token;
    }
    if (this.#terms.size < MAX_SHARED * 5) this.#terms.set(name, known);
    return { transitions: known.transitions, lookedAtSince: known.since };
  }

  /** Why a resource cannot be had, and an earlier look at it, if there was one lately. */
  explain(resource: string): Promise<{
    readonly at: number;
    readonly seen: LockExplanation;
    readonly before: LockExplanation | undefined;
  }> {
    return this.#share(`explain ${resource}`, async () => {
      const explanation = await this.source.client.operators.explain(resource);
      const look = { at: performance.now(), explanation };
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

  #share<T>(key: string, look: () => Promise<T>): Promise<T> {
    const now = performance.now();
    const shared = this.#shared.get(key);
    if (shared && now < shared.at + SHARED_MS) return shared.answer as Promise<T>;
    for (const [each, { at }] of this.#shared) if (now >= at + SHARED_MS) this.#shared.delete(each);
    const answer = within(look(), this.clock);
    if (this.#shared.size < MAX_SHARED) this.#shared.set(key, { at: now, answer });
    answer.catch(() => {});
    return answer;
  }
}

/** @throws Refusal for what cannot be answered, or not in time */
async function within<T>(looking: Promise<T>, clock: Clock): Promise<T> {
  const over = new AbortController();
  const late = pause(clock, MAX_MS, over.signal).then((why) => {
    if (why === 'time') throw redisAway();
    return undefined as never;
  });
  late.catch(() => {});
  try {
    return await Promise.race([looking, late]);
  } catch (error) {
    throw refusalOf(error);
  } finally {
    looking.catch(() => {});
    over.abort();
  }
}

export function redisAway(): Refusal {
  return new Refusal('REDIS_AWAY', AWAY);
}

/** How a view or an action answers to an error of the locks. Messages that may name an address are not passed on. */
export function refusalOf(error: unknown): unknown {
  if (error instanceof JobNotFoundError) return new Refusal('UNKNOWN_JOB', error.message);
  if (error instanceof LockShutdownError) return new Refusal('SHUTTING_DOWN', 'The application is shutting down.');
  if (error instanceof LockUnavailableError) {
    const { failure } = (error.cause ?? {}) as { readonly failure?: unknown };
    return new Refusal('REDIS_AWAY', failure === 'refused' ? REFUSES : AWAY);
  }
  if (!(error instanceof InvalidLockOptionsError)) return error;
  const { option, message } = error;
  return option === 'store' ? new Refusal('NOT_SUPPORTED', message) : new Refusal('BAD_REQUEST', message);
}
