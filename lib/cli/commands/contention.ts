import { OTHER_GROUP } from '../../core/api/label.js';
import { defineCommand } from '../frame/command.js';
import { durationOption } from '../frame/options.js';
import { durationCell, longDuration } from '../frame/output.js';
import { pauseFor } from '../frame/pause.js';
import { callRoll, type Roll, tellMissing } from '../frame/roll.js';

const DEFAULT_FOR_MS = 10_000;
const MOST_ROWS = 20;

export const contention = defineCommand({
  name: 'contention',
  summary: 'Shows which work waits for which: now, and in the last minutes.',
  args: [],
  options: {
    for: durationOption(
      `How long to count first, where no instance counts yet. ${DEFAULT_FOR_MS / 1_000}s without it.`,
    ),
  },
  details: [
    'Instances begin to count when they are asked for the first time, and stop a minute after the last time. So the',
    'first call counts for a while; a call within the next minute shows all since then, of the last ten minutes at most.',
  ],
  examples: ['contention', 'contention --for 1m'],
  async run({ options, output, terminal, session, signal }) {
    const opened = await session();
    let roll = await callRoll(opened);
    const isCounting = roll.instances.some(({ lastMinute }) => lastMinute !== null);
    const countMs = options.for ?? (isCounting ? 0 : DEFAULT_FOR_MS);
    if (countMs > 0) {
      terminal.progress(`The instances count for ${longDuration(countMs)} …`);
      await pauseFor(countMs, signal);
      roll = await callRoll(opened);
    }
    const now = waitsNow(roll);
    const blockers = merged(roll.instances.flatMap((each) => each.blockers));
    output.print({
      json: { keyPrefix: opened.keyPrefix, completeness: roll.completeness, now, blockers },
      shown: [
        tableOf(['WAITS NOW', 'FOR', 'CALLS', 'LONGEST WAIT'], now, 'No call waits now.'),
        tableOf(['WAITED', 'FOR', 'CALLS', 'TIME IN ALL'], blockers, 'No call has waited since the instances count.'),
      ],
    });
    return tellMissing(roll, output) ? 'partial' : 'done';
  },
});

interface Blocked {
  readonly waiter: string;
  readonly holder: string;
  readonly waitedMs: number;
  readonly calls: number;
}

function tableOf(columns: readonly string[], all: readonly Blocked[], ifEmpty: string) {
  const rows = all.map(({ waiter, holder, calls, waitedMs }) => [
    named(waiter),
    named(holder),
    calls,
    durationCell(waitedMs),
  ]);
  return { columns, rows, ifEmpty };
}

function waitsNow({ instances, unlisted }: Roll): Blocked[] {
  const holders = new Map<string, string>();
  for (const { resource, label } of unlisted) holders.set(resource, label?.group ?? 'a holder that does not answer');
  for (const { resource, group } of instances.flatMap(({ held }) => held)) holders.set(resource, group);
  const waits = instances.flatMap(({ waiting }) => waiting);
  const blocked = waits.map(({ resource, group, waitedMs }) => {
    return { waiter: group, holder: holders.get(resource) ?? 'not known', waitedMs, calls: 1 };
  });
  return merged(blocked, Math.max);
}

function merged(all: readonly Blocked[], both = (a: number, b: number): number => a + b): Blocked[] {
  const found = new Map<string, Blocked>();
  for (const each of all) {
    const key = JSON.stringify([each.waiter, each.holder]);
    const before = found.get(key);
    found.set(
      key,
      before ? { ...each, calls: before.calls + each.calls, waitedMs: both(before.waitedMs, each.waitedMs) } : each,
    );
  }
  return [...found.values()].sort((a, b) => b.waitedMs - a.waitedMs).slice(0, MOST_ROWS);
}

function named(group: string): string {
  return group === OTHER_GROUP ? 'everything else' : group;
}
