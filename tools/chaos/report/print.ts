import type { Outcome } from './row.js';

const MAX_COMPLAINTS = 30;

/** The table, as Markdown. */
export function table({ rows }: Pick<Outcome, 'rows'>): string {
  const lines = rows.map(
    ({ what, target, seen, met }) => `| ${what} | ${target} | ${seen}${met ? '' : ' **missed**'} |`,
  );
  return ['| What | Target | Seen |', '| --- | --- | --- |', ...lines].join('\n');
}

/** The failures, for the person who investigates them. */
export function complaintsOf({ complaints }: Outcome): string {
  const left = complaints.length - MAX_COMPLAINTS;
  return [...complaints.slice(0, MAX_COMPLAINTS), ...(left > 0 ? [`and ${left} more`] : [])].join('\n');
}
