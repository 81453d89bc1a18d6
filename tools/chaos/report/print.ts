import type { Outcome } from './row.js';

const MOST_COMPLAINTS = 30;

/** The table as Markdown: what is printed, and what stands in docs/operations/reliability.md. */
export function table({ rows }: Pick<Outcome, 'rows'>): string {
  const lines = rows.map(
    ({ what, target, seen, met }) => `| ${what} | ${target} | ${seen}${met ? '' : ' **missed**'} |`,
  );
  return ['| What | Target | Seen |', '| --- | --- | --- |', ...lines].join('\n');
}

/** What went wrong, for the person who has to find out why. */
export function complaintsOf({ complaints }: Outcome): string {
  const left = complaints.length - MOST_COMPLAINTS;
  return [...complaints.slice(0, MOST_COMPLAINTS), ...(left > 0 ? [`and ${left} more`] : [])].join('\n');
}

/** The page with another table of one part. */
export function withTable(page: string, part: string, text: string): string {
  const [opening, closing] = [`<!-- chaos: ${part} -->`, `<!-- /chaos: ${part} -->`];
  const [from, to] = [page.indexOf(opening), page.indexOf(closing)];
  if (from < 0 || to < from) throw new Error(`The page has no place for the table: ${opening} ... ${closing}`);
  return `${page.slice(0, from + opening.length)}\n\n${text}\n\n${page.slice(to)}`;
}
