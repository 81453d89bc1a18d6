import { leadershipsOf } from '../../views/leaders.js';
import { LIVES, wordOf } from '../../views/words.js';
import { defineCommand } from '../frame/command.js';
import { durationCell } from '../frame/output.js';
import { pollInstances, tellMissing } from '../frame/roll.js';

export const leaders = defineCommand({
  name: 'leaders',
  summary: 'Lists the leaderships: who leads, whether that process answers, the candidates, and recent elections.',
  args: [],
  options: {},
  details: [
    'ELECTIONS is the number of elections in the last ten minutes.',
    'If an instance does not answer, all keys are scanned to find its leaderships.',
  ],
  examples: ['leaders'],
  async run({ output, session }) {
    const opened = await session();
    const roll = await pollInstances(opened);
    const found = await leadershipsOf(opened.client, roll);
    output.print({
      json: { keyPrefix: opened.keyPrefix, completeness: roll.completeness, leaders: found },
      shown: [
        {
          columns: ['NAME', 'LEADER', 'STATE', 'TOKEN', 'LEADS FOR', 'LEFT', 'CANDIDATES', 'ELECTIONS'],
          rows: found.map(({ name, leader, life, fencingToken, leadsForMs, ttlMs, candidates, elections }) => [
            name,
            leader ?? 'none',
            life && wordOf(LIVES[life]),
            fencingToken,
            durationCell(leadsForMs),
            durationCell(ttlMs),
            candidates,
            elections,
          ]),
          ifEmpty: 'There are no leaders, and no candidates.',
        },
      ],
    });
    return tellMissing(roll, output) ? 'partial' : 'done';
  },
});
