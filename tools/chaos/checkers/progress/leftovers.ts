import type { History } from '../../history/history.js';
import { Findings, ms } from '../findings.js';
import type { Verdict } from '../violation.js';

/**
 * The fence stays for ever. The ticks of jobs that have run are kept until no clock can come too late for them, and what is
 * known of the jobs for a week more.
 */
const STAYS = /(^|:)fence$|:tick:[^:]*$|\}:(last-tick|runs|job|instances)$|(^|:)jobs$/;

/** "Nothing is left": all processes have closed, and left nothing in Redis but the fence, and no open handles. */
export function leftovers(history: History): Verdict {
  const findings = new Findings('leftovers');
  for (const { at, keys, clients, channels } of history.of('leftovers')) {
    findings.looked++;
    const left = { keys: keys.filter((key) => !STAYS.test(key)), clients, channels };
    for (const [what, names] of Object.entries(left)) {
      if (names.length > 0)
        findings.violate(at, () => `${names.length} ${what} were left: ${names.slice(0, 20).join(', ')}`);
    }
  }
  for (const { at, process, handles } of history.of('open')) {
    findings.looked++;
    if (handles.length > 0) findings.violate(at, () => `${process} was kept alive by ${handles.join(', ')}`);
  }
  const closed = new Set(history.of('closed').map(({ process }) => process));
  for (const { at, process } of history.of('closing')) {
    findings.looked++;
    if (closed.has(process) || history.deaths.has(process)) continue;
    findings.violate(at, () => `${process} began to close at ${ms(at)} and never had closed`);
  }
  return findings.verdict();
}
