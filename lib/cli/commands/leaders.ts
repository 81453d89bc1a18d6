import { LEADER_PREFIX } from '../../core/api/resource.js';
import { defineCommand } from '../frame/command.js';
import { durationCell } from '../frame/output.js';

const MOST_LEADERS = 1_000;

export const leaders = defineCommand({
  name: 'leaders',
  summary: 'Lists the leaderships: who leads, for how long, and how many candidates wait.',
  args: [],
  options: {},
  examples: ['leaders'],
  async run({ output, session }) {
    const { client, keyPrefix } = await session();
    const states = await client.operators.list({ prefix: LEADER_PREFIX, limit: MOST_LEADERS });
    const found = states.map(({ resource, holders: [holder], waiters }) => ({
      name: resource.slice(LEADER_PREFIX.length),
      ...(holder && {
        leader: holder.instanceId,
        fencingToken: holder.fencingToken,
        leadsForMs: holder.heldMs,
        ttlMs: holder.ttlMs,
      }),
      candidates: waiters.length,
    }));
    output.print({
      json: { keyPrefix, leaders: found },
      shown: [
        {
          columns: ['NAME', 'LEADER', 'TOKEN', 'LEADS FOR', 'LEFT', 'CANDIDATES'],
          rows: found.map(({ name, leader, fencingToken, leadsForMs, ttlMs, candidates }) => [
            name,
            leader ?? 'none',
            fencingToken,
            durationCell(leadsForMs),
            durationCell(ttlMs),
            candidates,
          ]),
          ifEmpty: 'There are no leaders, and no candidates.',
        },
      ],
    });
    return 'done';
  },
});
