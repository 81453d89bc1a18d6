import { formatDuration } from '../../../kernel/util/durations.js';
import { RULES, type Violation } from '../try/check-history.js';
import type { Tried } from '../try/try.js';
import { type Check, failing, ok } from './check.js';

const FORGETS =
  'Find out whether Redis lost data or had its clock changed during the try: look for a restart, a failover or an eviction.';
const REPORT =
  'Repeat doctor --try with this --seed and --history <file>, and report the seed and the file as a bug of nestjs-redis-lock.';

const PROMISES: Record<Violation['rule'], { readonly kept: (tried: Tried) => string; readonly fix: string }> = {
  exclusion: { kept: () => 'No two leases that exclude each other were valid at once.', fix: FORGETS },
  tokens: { kept: () => 'Each fencing token was larger than those before it.', fix: FORGETS },
  losses: {
    kept: ({ lost, latestLossMs }) =>
      lost === 0
        ? 'No lease was lost.'
        : `Each lost lease was reported within ${formatDuration(latestLossMs)} (${lost} lost).`,
    fix: REPORT,
  },
  handOver: {
    kept: ({ slowestHandOverMs }) =>
      `Each free lock was granted to the next waiter within ${formatDuration(slowestHandOverMs)}.`,
    fix: REPORT,
  },
};

/** One check for each promise that was tried, the broken ones first. */
export function checkPromises(tried: Tried): Check[] {
  const checks = RULES.map((rule) => {
    const broken = tried.violations.find((each) => each.rule === rule);
    const { kept, fix } = PROMISES[rule];
    const check = rule === 'handOver' ? 'hand-over' : rule;
    return broken ? failing(check, broken.what, fix) : ok(check, kept(tried));
  });
  return checks.toSorted((a, b) => Number(b.status === 'failed') - Number(a.status === 'failed'));
}
