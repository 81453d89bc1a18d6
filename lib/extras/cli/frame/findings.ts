import type { Finding } from '../../../features/fleet/core/findings/finding.js';
import { plainOrQuoted } from '../../../kernel/util/quoted.js';
import type { Output, Table } from './output.js';

/** @param prefix set if there are several applications, whose commands need it */
export function findingTable(findings: readonly Finding[], format: Output['format'], prefix?: string): Table {
  const rows = findings.flatMap(({ severity, kind, resource = '', sentence, action: { text, command } }) => {
    const line =
      prefix === undefined ? command : command.replace('npx nestjs-redis-lock', `$& --prefix ${plainOrQuoted(prefix)}`);
    if (format !== 'table') return [[severity, kind, resource, sentence, text, line]];
    // The remedy is printed below: beside it, no terminal would be wide enough.
    return [
      [severity, sentence],
      ['', `→ ${text}`],
      ['', `  ${line}`],
    ];
  });
  const inPrefix = prefix === undefined ? '' : ` in ${plainOrQuoted(prefix)}`;
  return {
    columns: ['FINDINGS', `${findings.length}${inPrefix}`],
    rows,
    ifEmpty: `Nothing needs attention${inPrefix}.`,
  };
}
