import type { Holder } from '../../core/api/holder.js';
import { OTHER_GROUP } from '../../core/api/label.js';
import type { LockState } from '../../core/store/lock-state.js';
import { defineCommand } from '../frame/command.js';
import { flagOption, integerOption, textOption } from '../frame/options.js';
import { type CellValue, durationCell } from '../frame/output.js';

const DEFAULT_LIMIT = 100;

export const ls = defineCommand({
  name: 'ls',
  summary: 'Lists what is held and waited for: by whom, for how long, and what is left of the lease.',
  args: [{ name: 'prefix' }],
  options: {
    waiting: flagOption('Lists only what is waited for.'),
    group: textOption('group', 'Lists only what a call of this group holds or waits for, as far as labels say it.'),
    limit: integerOption('number', `How many resources to list at most. ${DEFAULT_LIMIT} without it.`),
  },
  details: [
    'The prefix is that of the names of resources: ls order: lists order:7. It is plain text, not a pattern.',
    'It goes through all keys of the database, a thousand at a time. That blocks no other client.',
  ],
  examples: ['ls', 'ls order: --waiting', 'ls --json'],
  async run({ args, options, output, session }) {
    const { client, keyPrefix } = await session();
    const { waiting, group, limit = DEFAULT_LIMIT } = options;
    const [prefix = ''] = args;
    // One more than is shown: then it is known that there are more.
    const found = await client.operators.list({ prefix, limit: Math.min(limit + 1, 10_000) });
    const wanted = found.filter((state) => isWanted(state, { waiting, group }));
    const locks = wanted.slice(0, limit);
    output.print({
      json: { keyPrefix, locks },
      shown: [
        { columns: COLUMNS, rows: locks.flatMap(rowsOf), ifEmpty: 'Nothing is held, and nothing is waited for.' },
      ],
    });
    if (found.length <= limit) return 'done';
    output.note(`There are more than ${limit} resources. State a prefix, or a larger --limit.`);
    return 'partial';
  },
});

export const COLUMNS = ['RESOURCE', 'MODE', 'HOLDER', 'LABEL', 'TOKEN', 'HELD FOR', 'LEFT', 'WAITERS'];

function isWanted(
  { waiters, holders }: LockState,
  { waiting, group }: { waiting: boolean; group: string | undefined },
) {
  if (waiting && waiters.length === 0) return false;
  return group === undefined || [...holders, ...waiters].some(({ label }) => label?.group === group);
}

/** A row for each holder; one without a holder where it is free and waited for. */
function rowsOf(state: LockState): CellValue[][] {
  const { resource, mode, holders, waiters } = state;
  if (holders.length === 0) return [[resource, mode ?? 'free', '', '', '', '', '', waiters.length]];
  return holders.map((holder, index) => [
    resource,
    holder.mode,
    holder.instanceId,
    labelText(holder),
    holder.fencingToken,
    durationCell(holder.heldMs),
    durationCell(holder.ttlMs),
    index === 0 ? waiters.length : '',
  ]);
}

export function labelText({ label, isKept, isHandedOn }: Pick<Holder, 'label' | 'isKept' | 'isHandedOn'>): string {
  if (isKept) return 'released, kept by minHoldMs';
  if (isHandedOn) return 'handed on inside that process';
  if (!label) return '';
  const { group, traceparent: _, ...others } = label;
  const texts = Object.entries(others).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [...(group === undefined || group === OTHER_GROUP ? [] : [group]), ...texts].join(', ');
}
