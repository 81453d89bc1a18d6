import { defineCommand } from '../frame/command.js';
import { type CellValue, durationCell } from '../frame/output.js';
import { instanceRows } from '../../views/instances.js';
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
    const { instances: heard, silent, completeness, unreadable, askedAt } = roll;
    const rows = instanceRows(roll).map((row): CellValue[] => [
      row.instanceId,
      wordOf(INSTANCE_STATES[row.state]),
      row.version,
      durationCell(row.startedAt && askedAt - row.startedAt),
      durationCell(row.loopDelayMs),
      durationCell(row.blockedMs),
      row.hearing === undefined ? undefined : row.hearing ? 'yes' : 'no',
      row.held,
      row.waiting,
      row.leads?.join(' '),
    ]);
    output.print({
      json: { keyPrefix: opened.keyPrefix, completeness, instances: heard, silent, unreadable },
      shown: [{ columns: COLUMNS, rows, ifEmpty: 'No instance is connected.' }],
    });
    return tellMissing(roll, output) ? 'partial' : 'done';
  },
});

const COLUMNS = ['INSTANCE', 'STATE', 'VERSION', 'UP FOR', 'LOOP', 'BLOCKED', 'MESSAGES', 'HELD', 'WAITING', 'LEADS'];
