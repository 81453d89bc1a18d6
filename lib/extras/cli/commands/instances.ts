import type { FleetInstance } from '../../../features/fleet/core/roll/lock-fleet.js';
import { defineCommand } from '../frame/command.js';
import { type CellValue, durationCell } from '../frame/output.js';
import { unsubscribedIn } from '../../views/roll.js';
import { INSTANCE_STATES, wordOf } from '../../views/words.js';
import { pollInstances, tellMissing } from '../frame/roll.js';

export const instances = defineCommand({
  name: 'instances',
  summary: 'Lists the instances: version, uptime, whether they receive messages, and what they hold and wait for.',
  args: [],
  options: {},
  details: [
    'LOOP is the duration of the latest turn of the event loop, BLOCKED the longest block in the last minute.',
    'MESSAGES shows whether the instance receives messages; if not, it polls every second.',
  ],
  examples: ['instances'],
  async run({ output, session }) {
    const opened = await session();
    const roll = await pollInstances(opened);
    const { instances: heard, silent, completeness, unreadable } = roll;
    const unheard = (ids: readonly string[], state: string): string[][] => ids.map((id) => [id, wordOf(state)]);
    const rows = [
      ...heard.map(rowOf),
      ...unheard(silent, INSTANCE_STATES.silent),
      ...unheard(unsubscribedIn(roll), INSTANCE_STATES.unsubscribed),
    ];
    output.print({
      json: { keyPrefix: opened.keyPrefix, completeness, instances: heard, silent, unreadable },
      shown: [{ columns: COLUMNS, rows, ifEmpty: 'No instance is connected.' }],
    });
    return tellMissing(roll, output) ? 'partial' : 'done';
  },
});

const COLUMNS = ['INSTANCE', 'STATE', 'VERSION', 'UP FOR', 'LOOP', 'BLOCKED', 'MESSAGES', 'HELD', 'WAITING', 'LEADS'];

function rowOf(instance: FleetInstance): CellValue[] {
  const { held, waiting, more, leaderships } = instance;
  return [
    instance.instanceId,
    wordOf(INSTANCE_STATES[instance.health]),
    instance.version,
    durationCell(instance.uptimeMs),
    durationCell(instance.loopDelayMs),
    durationCell(instance.blockedMs),
    instance.hearing ? 'yes' : 'no',
    held.length + more.held,
    waiting.length + more.waiting,
    leaderships.flatMap(({ name, isLeader }) => (isLeader ? [name] : [])).join(' '),
  ];
}
