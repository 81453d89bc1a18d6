import { LATE_MS } from '../../../../kernel/util/alarms.js';
import type { LocalQueues } from '../../../../kernel/acquiring/local-queues.js';
import type { Watchdog } from '../../../../kernel/holding/watchdog.js';
import type { Runtime } from '../../../../kernel/holding/runtime.js';
import {
  type HealthProblem,
  type LockTopology,
  orTooSlow,
  type ServerHealth,
  type StoreProbe,
  type StoreProblem,
} from '../../../../kernel/store/store-probe.js';
import { Option, type OptionsOf, OptionTable } from '../../../../kernel/api/validation.js';

/** Options of `locks.health()`. */
export interface HealthOptions {
  /**
   * Time to wait for Redis before it counts as down. The default is below the default timeout of a Kubernetes probe,
   * one second.
   *
   * @allowed 1 ms to 60 s
   * @default 800
   */
  timeoutMs?: number;
}

export const HEALTH_OPTIONS = new OptionTable({
  timeoutMs: Option.milliseconds(1, 60_000).default(800),
} satisfies OptionsOf<HealthOptions>);

/** One leadership that this process campaigns for. */
export interface LeadershipHealth {
  readonly name: string;
  /** `true` if this process leads. */
  readonly isLeader: boolean;
}

/** The result of `locks.health()`. It contains no addresses, no resource names and no credentials. */
export interface LockHealth {
  /**
   * `up`: locks can be acquired. `degraded`: the same, but `problems` is not empty. `down`: some or all locks cannot be
   * acquired.
   */
  readonly status: 'up' | 'degraded' | 'down';
  readonly topology: LockTopology;
  /**
   * The round-trip time of a script that writes, on the slowest of the required servers, in milliseconds. `null` if too
   * few servers answered.
   */
  readonly roundTripMs: number | null;
  /** The number of servers in total, the number required to grant a lock, and the number that are up. */
  readonly servers: { readonly total: number; readonly needed: number; readonly up: number };
  /** The problems. Empty when `status` is `up`. */
  readonly problems: readonly HealthProblem[];
  /** The number of leases that this process holds, including leaderships and jobs. */
  readonly held: number;
  /** The number of calls of this process that wait for a lock, not counting candidates for a leadership. */
  readonly waiting: number;
  /** The time that the oldest of these calls has waited, in milliseconds; 0 if none waits. */
  readonly oldestWaitMs: number;
  /** Milliseconds since the last failed renewal; `null` if none has failed. */
  readonly lastRenewalFailureMs: number | null;
  /** The leaderships that this process campaigns for. */
  readonly leaderships: readonly LeadershipHealth[];
}

interface HealthDeps extends Runtime {
  readonly localQueues: LocalQueues;
  readonly watchdog: Watchdog;
  readonly leaderships?: () => readonly LeadershipHealth[];
}

const SHUTTING_DOWN: StoreProblem = {
  code: 'SHUTDOWN',
  message: 'The application is shutting down and acquires no new locks.',
  isFatal: true,
};

/**
 * Checks whether a lock could be taken now. Keeps nothing between two checks: a store sends no second probe to a server
 * that has not answered the first one, so checks at the same time share one.
 */
export class HealthChecks {
  constructor(private readonly deps: HealthDeps) {}

  /** @throws InvalidLockOptionsError */
  async check(options: HealthOptions = {}): Promise<LockHealth> {
    HEALTH_OPTIONS.check('health', options);
    const { timeoutMs = HEALTH_OPTIONS.defaults.timeoutMs } = options;
    const probe = this.deps.store.probe();
    const answers = await this.#answersTo(probe, timeoutMs);
    return { ...judge(probe, answers, this.deps.closing.aborted), ...this.#ownState() };
  }

  /** Returns the answer of each server, or a problem if it is late. */
  async #answersTo({ servers }: StoreProbe, timeoutMs: number): Promise<readonly ServerHealth[]> {
    const { clock, defaults } = this.deps;
    const answers: (ServerHealth | undefined)[] = servers.map(() => undefined);
    await new Promise<void>((resolve) => {
      let pending = servers.length;
      if (pending === 0) return resolve();
      const giveUpAt = clock.now() + timeoutMs;
      const isOver = (): void => {
        if (clock.now() - giveUpAt > LATE_MS) timer = clock.setTimer(resolve, LATE_MS);
        else resolve();
      };
      let timer = clock.setTimer(isOver, timeoutMs);
      const answered = (answer: ServerHealth, index: number): void => {
        answers[index] = orTooSlow(answer, defaults.attemptTimeoutMs, 'attemptTimeoutMs');
        if (--pending > 0) return;
        timer.cancel();
        resolve();
      };
      servers.forEach((server, index) => void server.then((answer) => answered(answer, index)));
    });
    const silent = { code: 'TIMEOUT', message: `Redis has not answered within ${timeoutMs} ms.`, isFatal: true };
    return answers.map((answer) => answer ?? { problems: [silent] });
  }

  #ownState(): Pick<LockHealth, 'held' | 'waiting' | 'oldestWaitMs' | 'lastRenewalFailureMs' | 'leaderships'> {
    const { clock, localQueues, watchdog, leaderships } = this.deps;
    const now = clock.now();
    const failedAt = watchdog.lastFailureAt;
    let oldestWaitAt = now;
    for (const { call } of localQueues.waits()) oldestWaitAt = Math.min(oldestWaitAt, call.startedAt);
    return {
      held: watchdog.size,
      waiting: localQueues.countWaiting(),
      oldestWaitMs: Math.round(now - oldestWaitAt),
      lastRenewalFailureMs: failedAt === undefined ? null : Math.round(now - failedAt),
      leaderships: leaderships?.() ?? [],
    };
  }
}

function judge(
  { topology, needed, problems }: StoreProbe,
  answers: readonly ServerHealth[],
  isClosing: boolean,
): Pick<LockHealth, 'status' | 'topology' | 'roundTripMs' | 'servers' | 'problems'> {
  const well = answers.filter((answer) => !answer.problems.some(({ isFatal }) => isFatal));
  const general = isClosing && problems.length === 0 ? [SHUTTING_DOWN] : problems;
  const found = [...general.map((problem) => asShown(problem)), ...answers.flatMap(problemsOf)];
  const isDown = well.length < needed || general.some(({ isFatal }) => isFatal);
  const times = well.flatMap(({ roundTripMs }) => (roundTripMs === undefined ? [] : [roundTripMs]));
  const slowest = times.sort((a, b) => a - b)[needed - 1];
  return {
    status: isDown ? 'down' : found.length > 0 ? 'degraded' : 'up',
    topology,
    roundTripMs: slowest === undefined ? null : Math.round(slowest * 100) / 100,
    servers: { total: answers.length, needed, up: well.length },
    problems: found,
  };
}

function problemsOf({ problems }: ServerHealth, index: number, { length }: readonly ServerHealth[]): HealthProblem[] {
  // The only server needs no number.
  return problems.map((problem) => asShown(problem, length === 1 ? undefined : index + 1));
}

function asShown({ code, message }: StoreProblem, server?: number): HealthProblem {
  return server === undefined ? { code, message } : { code, message, server };
}
