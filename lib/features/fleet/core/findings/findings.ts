import type { FleetReport } from '../roll/lock-fleet.js';
import { type Finding, FINDING_KINDS, type SeenJob, SEVERITIES } from './finding.js';
import { instanceFindings } from './instance-findings.js';
import { jobFindings } from './job-findings.js';
import { lockFindings } from './lock-findings.js';
import { redisFindings, type SeenHealth } from './redis-findings.js';

/**
 * Derives what is wrong, the worst first. Each part may be missing: Redis may refuse one question and answer another.
 */
export function findings(fleet: FleetReport | undefined, jobs?: readonly SeenJob[], health?: SeenHealth): Finding[] {
  const found = [
    ...(health ? redisFindings(health) : []),
    ...(fleet ? [...lockFindings(fleet), ...instanceFindings(fleet, jobs ?? [])] : []),
    ...(jobs ? jobFindings(jobs, fleet) : []),
  ];
  return found.sort((a, b) => {
    const bySeverity = SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity);
    const byBlocked = (b.blocked?.calls ?? 0) - (a.blocked?.calls ?? 0);
    const byKind = FINDING_KINDS.indexOf(a.kind) - FINDING_KINDS.indexOf(b.kind);
    // Nothing works without Redis.
    const byRedis = Number(b.kind === 'redisDown') - Number(a.kind === 'redisDown');
    return bySeverity || byRedis || byBlocked || byKind || (a.since ?? Infinity) - (b.since ?? Infinity) || 0;
  });
}
