import { quote } from '../../../kernel/util/quoted.js';
import type { LockState } from '../../../kernel/store/lock-state.js';
import { LockUnavailableError } from '../../../kernel/api/errors.js';
import { defineCommand } from '../frame/command.js';
import { flagOption, integerOption, textOption } from '../frame/options.js';
import { type CellValue, durationCell, type Found, type Output } from '../frame/output.js';
import { type LockRow, lockRows, lockRowsInRedis } from '../../views/locks.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { EVERYTHING_ELSE } from '../../views/roll.js';
import { LIVES, wordOf } from '../../views/words.js';
import { pollInstances, tellMissing } from '../frame/roll.js';
import type { Session } from '../frame/session.js';

const DEFAULT_LIMIT = 100;

interface Wanted {
  readonly prefix: string;
  readonly waiting: boolean;
  readonly group: string | undefined;
  readonly limit: number;
  readonly scan: boolean;
}

export const ls = defineCommand({
  name: 'ls',
  summary: 'Lists held locks and the calls that wait for them: who, for how long, and how much of the lease is left.',
  args: [{ name: 'prefix' }],
  options: {
    waiting: flagOption('Lists only resources that a call waits for.'),
    group: textOption(
      'group',
      'Lists only resources that a call of this group, such as Orders.pay, holds or waits for.',
    ),
    scan: flagOption('Also scans all keys, to find dead holders that no call waits for.'),
    limit: integerOption('number', `How many rows to list at most. Default: ${DEFAULT_LIMIT}.`),
  },
  details: [
    'The argument is the beginning of resource names, not a pattern: `ls order:` lists order:7.',
    'The instances report the locks from memory. If a call waits for a holder that no instance reports, `ls` asks Redis,',
    'and STATE shows whether that holder is dead. --scan does not block other clients.',
    'With --json, each lock has the same fields as in the console. All times are epoch milliseconds; `at` is now.',
    'A lease that you end with `release` stays in the list until its holder tries to renew it.',
  ],
  examples: ['ls', 'ls order: --waiting', 'ls --scan'],
  async run({ args, options, output, session }) {
    const opened = await session();
    const { waiting, group, scan, limit = DEFAULT_LIMIT } = options;
    const wanted = { prefix: args[0] ?? '', waiting, group, limit, scan };
    const roll = await pollInstances(opened, {
      prefix: wanted.prefix,
      scan,
      ...(group !== undefined && { group }),
    }).catch((error: unknown) => {
      if (!(error instanceof LockUnavailableError)) throw error;
      output.note(`The instances cannot be queried (${error.message}), so all keys are scanned.`);
      return undefined;
    });
    return roll ? listRoll(opened, roll, wanted, output) : listKeys(opened, wanted, output);
  },
});

const COLUMNS = ['RESOURCE', 'MODE', 'HOLDER', 'WORK', 'TOKEN', 'HELD FOR', 'LEFT', 'WAITERS', 'OLDEST WAIT', 'STATE'];

function listRoll({ keyPrefix }: Session, roll: FleetReport, wanted: Wanted, output: Output): 'done' | 'partial' {
  const found = lockRows(roll).filter(({ waiters }) => !wanted.waiting || waiters > 0);
  const { completeness, askedAt: at } = roll;
  output.print(shown({ keyPrefix, completeness, at, locks: found.slice(0, wanted.limit) }, nothing(wanted)));
  const isPartial = tellMissing(roll, output, wanted.scan ? null : ' ls --scan lists everything that is held.');
  return tellMore(found.length, wanted, output) || isPartial ? 'partial' : 'done';
}

async function listKeys({ client, keyPrefix }: Session, wanted: Wanted, output: Output): Promise<'done' | 'partial'> {
  const { prefix, waiting, group, limit } = wanted;
  // One more than is shown: then it is known that there are more.
  const states = await client.operators.list({ prefix, limit: Math.min(limit + 1, 10_000) });
  const at = Date.now();
  const isOfGroup = ({ holders, waiters }: LockState): boolean =>
    group === undefined || [...holders, ...waiters].some(({ label }) => label?.group === group);
  const found = states.filter((state) => isOfGroup(state) && !(waiting && state.waiters.length === 0));
  const locks = found.slice(0, limit).flatMap((state) => lockRowsInRedis(state, at));
  output.print(shown({ keyPrefix, completeness: 'partial', at, locks }, nothing({ ...wanted, scan: true })));
  tellMore(states.length, wanted, output);
  return 'partial';
}

/** Names the filters, because locks that they exclude may be held. */
function nothing({ prefix, waiting, group, scan }: Wanted): string {
  const filters = [
    prefix !== '' && ` that begin with ${quote(prefix)}`,
    waiting && ' that a call waits for',
    group !== undefined && ` that a call of the group ${quote(group)} holds or waits for`,
  ];
  return `No locks found${filters.filter(Boolean).join(' and')}.${scan ? '' : ' Pass --scan to find dead holders, too.'}`;
}

function shown(
  json: { at: number; locks: readonly LockRow[]; keyPrefix: string; completeness: string },
  ifEmpty: string,
): Found {
  const { at, locks } = json;
  const rows = locks.map((lock): CellValue[] => [
    lock.resource,
    lock.mode,
    lock.instanceId,
    lock.label ?? [lock.group !== EVERYTHING_ELSE && lock.group, lock.callSite].filter(Boolean).join(' '),
    lock.fencingToken,
    durationCell(lock.since && at - lock.since),
    durationCell(lock.until && lock.until - at),
    lock.waiters,
    durationCell(lock.oldestWaitSince && at - lock.oldestWaitSince),
    wordOf(LIVES[lock.life]),
  ]);
  return { json, shown: [{ columns: COLUMNS, rows, ifEmpty }] };
}

function tellMore(found: number, { limit }: Wanted, output: Output): boolean {
  if (found <= limit) return false;
  output.note(`There are more than ${limit} rows. Pass a prefix, or a larger --limit.`);
  return true;
}
