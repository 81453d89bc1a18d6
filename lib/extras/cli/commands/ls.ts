import type { LockState } from '../../../kernel/store/lock-state.js';
import { LockUnavailableError } from '../../../kernel/api/errors.js';
import { defineCommand } from '../frame/command.js';
import { flagOption, integerOption, textOption } from '../frame/options.js';
import { type CellValue, durationCell, type Found, type Output } from '../frame/output.js';
import { labelText, locksByHolder } from '../../views/locks.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import type { FleetLock } from '../../../features/fleet/core/roll/locks-in.js';
import { workOf } from '../../views/roll.js';
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
const NOTHING = 'No locks are held, and no call waits.';

/** A holder, or a resource that is free and waited for. */
interface Lock {
  readonly resource: string;
  readonly mode: string;
  readonly holder?: string;
  readonly work?: string;
  readonly fencingToken?: number;
  readonly heldMs?: number;
  readonly leftMs?: number;
  readonly waiters: number;
  readonly oldestWaitMs?: number;
  readonly state?: string;
}

function listRoll({ keyPrefix }: Session, roll: FleetReport, wanted: Wanted, output: Output): 'done' | 'partial' {
  const found = locksByHolder(roll).filter(({ waits }) => !wanted.waiting || waits.length > 0);
  const locks = found.slice(0, wanted.limit).map(rowOf);
  const { completeness } = roll;
  output.print(shown({ keyPrefix, completeness, locks }, locks));
  const isPartial = tellMissing(roll, output, wanted.scan ? null : ' ls --scan lists everything that is held.');
  return tellMore(found.length, wanted, output) || isPartial ? 'partial' : 'done';
}

function rowOf({ resource, waits, oldestWaitMs, holders: [seen] }: FleetLock): Lock {
  const waiting = { waiters: waits.length, ...(waits.length > 0 && { oldestWaitMs }) };
  if (!seen) return { resource, mode: 'free', ...waiting, state: wordOf(LIVES.noHolder) };
  const { instanceId, life, mode, fencingToken, heldMs, leftMs, holder } = seen;
  const work = holder ? labelText(holder) : workOf(seen);
  const state = wordOf(LIVES[life]);
  return { resource, mode, holder: instanceId, work, fencingToken, heldMs, leftMs, ...waiting, state };
}

async function listKeys({ client, keyPrefix }: Session, wanted: Wanted, output: Output): Promise<'done' | 'partial'> {
  const { prefix, waiting, group, limit } = wanted;
  // One more than is shown: then it is known that there are more.
  const states = await client.operators.list({ prefix, limit: Math.min(limit + 1, 10_000) });
  const isOfGroup = ({ holders, waiters }: LockState): boolean =>
    group === undefined || [...holders, ...waiters].some(({ label }) => label?.group === group);
  const found = states.filter((state) => isOfGroup(state) && !(waiting && state.waiters.length === 0));
  const locks = found.slice(0, limit).flatMap(locksIn);
  output.print(shown({ keyPrefix, completeness: 'partial', locks }, locks));
  tellMore(states.length, wanted, output);
  return 'partial';
}

/** A lock for each holder, or one without a holder if it is free and waited for. */
function locksIn({ resource, mode, holders, waiters: { length: waiters } }: LockState): Lock[] {
  if (holders.length === 0) return [{ resource, mode: mode ?? 'free', waiters }];
  return holders.map((each) => {
    const { instanceId: holder, fencingToken, heldMs, ttlMs: leftMs } = each;
    return { resource, mode: each.mode, holder, work: labelText(each), fencingToken, heldMs, leftMs, waiters };
  });
}

function shown(json: object, locks: readonly Lock[]): Found {
  const rows = locks.map((lock): CellValue[] => [
    lock.resource,
    lock.mode,
    lock.holder,
    lock.work,
    lock.fencingToken,
    durationCell(lock.heldMs),
    durationCell(lock.leftMs),
    lock.waiters,
    durationCell(lock.oldestWaitMs),
    lock.state,
  ]);
  return { json, shown: [{ columns: COLUMNS, rows, ifEmpty: NOTHING }] };
}

function tellMore(found: number, { limit }: Wanted, output: Output): boolean {
  if (found <= limit) return false;
  output.note(`There are more than ${limit} rows. Pass a prefix, or a larger --limit.`);
  return true;
}
