import type { History } from '../history/history.js';
import { Findings, ms } from './findings.js';
import type { Verdict } from './violation.js';

/** No unhandled rejection, no warning, no error that is none of the library's. It looks at the processes. */
export function crashes(history: History): Verdict {
  const findings = new Findings('crashes');
  const processes = new Set<string>();
  for (const { process } of history.entries) processes.add(process);
  findings.looked = processes.size;
  for (const { at, process, error } of history.of('crash')) {
    findings.violate(at, () => `${process} at ${ms(at)}: ${error}`);
  }
  return findings.verdict();
}
