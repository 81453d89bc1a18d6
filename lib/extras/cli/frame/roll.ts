import { SEEN_RUNS } from '../../../features/fleet/core/findings/finding.js';
import { describeUnreadable } from '../../../features/fleet/core/findings/instance-findings.js';
import { survey, type Survey } from '../../../features/fleet/core/findings/survey.js';
import type { FleetOptions, FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { plainOrQuoted, quoteSome } from '../../../kernel/util/quoted.js';
import type { Output } from './output.js';
import type { Session } from './session.js';

/** The time that instances have to answer. It ends sooner if all have answered. */
const ROLL_MS = 1_000;
const HEALTH_MS = 5_000;

export const SCAN_CUT = 'Redis has more than 10000 locks, and only some of them were checked.';

export const NO_OWN_JOBS: ReadonlySet<string> = new Set();

/** Asks all instances. @throws LockUnavailableError */
export function pollInstances({ client }: Session, options: FleetOptions = {}): Promise<FleetReport> {
  return client.report({ timeoutMs: ROLL_MS, ...options });
}

/** The state that `status` shows, and that `doctor` also checks. */
export function surveyOf(session: Session): Promise<Survey> {
  const { client, jobs } = session;
  return survey({
    fleet: pollInstances(session),
    health: client.health({ timeoutMs: HEALTH_MS }),
    jobs: jobs.listWithRuns(NO_OWN_JOBS, SEEN_RUNS),
    mayOnlyLook: session.mayOnlyLook(),
  });
}

/**
 * Prints which part of an answer is missing.
 *
 * @param hint the remedy if not all leases are listed; `null` if they were found in another way
 * @returns true if any is
 */
export function tellMissing(
  { instances, silent, unreadable, isScanCut }: FleetReport,
  output: Pick<Output, 'note'>,
  hint: string | null = '',
): boolean {
  const lines: string[] = [];
  if (silent.length > 0) {
    lines.push(
      `These instances are connected but did not answer (frozen, too busy, cut off from messages, or running an older version of nestjs-redis-lock): ${quoteSome(silent, 5)}.`,
    );
  }
  if (unreadable > 0) lines.push(describeUnreadable(unreadable));
  if (isScanCut) lines.push(SCAN_CUT);
  const long = instances.filter(({ more }) => more.held + more.waiting > 0);
  if (long.length > 0 && hint !== null) {
    const some = long.slice(0, 3).map(({ instanceId, more }) => {
      return `${plainOrQuoted(instanceId)} (${more.held} held, ${more.waiting} waiting)`;
    });
    lines.push(`Not everything is listed: ${some.join(', ')}${long.length > 3 ? ' and others' : ''}.${hint}`);
  }
  lines.forEach((line) => output.note(line));
  return lines.length > 0;
}
