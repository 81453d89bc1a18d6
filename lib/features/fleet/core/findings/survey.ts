import { LockUnavailableError } from '../../../../kernel/api/errors.js';
import type { LockHealth } from '../health/health-checks.js';
import type { FleetReport } from '../roll/lock-fleet.js';
import type { Finding, SeenJob } from './finding.js';
import { findings } from './findings.js';
import type { SeenHealth } from './redis-findings.js';

/** The questions whose answers the findings are derived from. */
interface Questions {
  readonly fleet: Promise<FleetReport>;
  readonly health: Promise<LockHealth>;
  readonly jobs: Promise<readonly SeenJob[] | undefined> | undefined;
  /** Resolves to true if the user lacks all rights to change a lock, so that it can try none. */
  readonly mayOnlyLook?: Promise<boolean> | undefined;
}

/** What was seen of one application, and what is wrong. A part that Redis refuses is `undefined`. */
export interface Survey {
  readonly fleet: FleetReport | undefined;
  readonly jobs: readonly SeenJob[] | undefined;
  readonly health: Omit<LockHealth, 'status'> & SeenHealth;
  readonly findings: readonly Finding[];
}

/** Awaits all answers, and derives the findings: for `locks.fleet()`, the command line and the console. */
export async function survey(asked: Questions): Promise<Survey> {
  const [fleet, jobs, health, mayOnlyLook = false] = await Promise.all([
    asked.fleet.catch(withoutAnswers),
    asked.jobs?.catch(withoutAnswers),
    asked.health,
    asked.mayOnlyLook,
  ]);
  const seen = mayOnlyLook ? seenFromOutside(health) : health;
  return { fleet, jobs, health: seen, findings: findings(fleet, jobs, seen) };
}

/** A user who may only look cannot try if others get a lock, and lacks the rights on purpose. */
function seenFromOutside(health: LockHealth): Survey['health'] {
  const problems = health.problems.filter(({ code }) => code !== 'NOPERM');
  return { ...health, status: 'notTried', roundTripMs: null, problems };
}

/** Ignores an error of Redis: the rest can be shown without this part. @throws every other error */
export function withoutAnswers(error: unknown): undefined {
  if (error instanceof LockUnavailableError) return undefined;
  throw error;
}
