import { defineCommand } from '../frame/command.js';
import { durationOption } from '../frame/options.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { durationCell } from '../frame/output.js';
import { pauseFor } from '../frame/pause.js';
import { groupName } from '../../views/roll.js';
import { type Blocked, blockedLately, blockedNow } from '../../views/waits.js';
import { pollInstances, tellMissing } from '../frame/roll.js';

const DEFAULT_FOR_MS = 10_000;
const MAX_ROWS = 20;

export const contention = defineCommand({
  name: 'contention',
  summary: 'Shows which work waits for which, now and in recent minutes.',
  args: [],
  options: {
    for: durationOption(
      `How long to count waits. Default: ${DEFAULT_FOR_MS / 1_000}s, or 0s if instances were asked in the last minute.`,
    ),
  },
  details: [
    'Makes the instances count waits, and shows the counts after --for. The instances count for another ten minutes: a second run in that time shows everything since the first.',
  ],
  examples: ['contention', 'contention --for 1m'],
  async run({ options, output, terminal, session, signal }) {
    const opened = await session();
    let roll = await pollInstances(opened);
    const isCounting = roll.instances.some(({ lastMinute }) => lastMinute !== null);
    const countMs = options.for ?? (isCounting ? 0 : DEFAULT_FOR_MS);
    if (countMs > 0) {
      terminal.progress(`Counting for ${longDuration(countMs)} …`);
      await pauseFor(countMs, signal);
      roll = await pollInstances(opened);
    }
    const now = blockedNow(roll).slice(0, MAX_ROWS);
    const blockers = blockedLately(roll).slice(0, MAX_ROWS);
    output.print({
      json: { keyPrefix: opened.keyPrefix, completeness: roll.completeness, now, blockers },
      shown: [
        tableOf(['WAITS NOW', 'FOR', 'CALLS', 'LONGEST WAIT'], now, 'No call is waiting now.'),
        tableOf(['WAITED', 'FOR', 'CALLS', 'TOTAL TIME'], blockers, 'No call has waited since counting started.'),
      ],
    });
    return tellMissing(roll, output) ? 'partial' : 'done';
  },
});

function tableOf(columns: readonly string[], all: readonly Blocked[], ifEmpty: string) {
  const rows = all.map(({ waiter, holder, calls, waitedMs }) => [
    groupName(waiter),
    groupName(holder),
    calls,
    durationCell(waitedMs),
  ]);
  return { columns, rows, ifEmpty };
}
