import { LEADER_PREFIX } from '../../core/api/resource.js';
import type { LockState } from '../../core/store/lock-state.js';
import { defineCommand } from '../frame/command.js';
import { durationCell } from '../frame/output.js';
import { callRoll, LIFE_WORDS, lifeOf, type Roll, tellMissing } from '../frame/roll.js';
import type { Session } from '../frame/session.js';

const MOST_LEADERS = 1_000;
const LOOKS_AT_ONCE = 20;

export const leaders = defineCommand({
  name: 'leaders',
  summary: 'Lists the leaderships: who leads, whether that process answers, and how many candidates wait.',
  args: [],
  options: {},
  details: ['Where an instance does not answer, all keys are looked through, so that its leaderships are listed, too.'],
  examples: ['leaders'],
  async run({ output, session }) {
    const opened = await session();
    const roll = await callRoll(opened);
    const states = await leaderStates(opened, roll);
    const found = states.map(({ resource, holders: [holder], waiters }) => ({
      name: resource.slice(LEADER_PREFIX.length),
      ...(holder && {
        leader: holder.instanceId,
        life: lifeOf(holder.instanceId, roll),
        fencingToken: holder.fencingToken,
        leadsForMs: holder.heldMs,
        ttlMs: holder.ttlMs,
      }),
      candidates: waiters.length,
    }));
    output.print({
      json: { keyPrefix: opened.keyPrefix, completeness: roll.completeness, leaders: found },
      shown: [
        {
          columns: ['NAME', 'LEADER', 'STATE', 'TOKEN', 'LEADS FOR', 'LEFT', 'CANDIDATES'],
          rows: found.map(({ name, leader, life, fencingToken, leadsForMs, ttlMs, candidates }) => [
            name,
            leader ?? 'none',
            life && LIFE_WORDS[life],
            fencingToken,
            durationCell(leadsForMs),
            durationCell(ttlMs),
            candidates,
          ]),
          ifEmpty: 'There are no leaders, and no candidates.',
        },
      ],
    });
    return tellMissing(roll, output) ? 'partial' : 'done';
  },
});

/** Of what instances campaign for. Only where some do not answer, all keys are looked through. */
async function leaderStates({ client }: Session, roll: Roll): Promise<LockState[]> {
  const isWhole = roll.completeness === 'complete' && roll.instances.every(({ more }) => more.leaderships === 0);
  if (!isWhole) return client.operators.list({ prefix: LEADER_PREFIX, limit: MOST_LEADERS });
  const names = [...new Set(roll.instances.flatMap((each) => each.leaderships.map(({ name }) => name)))].sort();
  const states: LockState[] = [];
  for (let from = 0; from < names.length; from += LOOKS_AT_ONCE) {
    const some = names.slice(from, from + LOOKS_AT_ONCE);
    states.push(...(await Promise.all(some.map((name) => client.operators.inspect(LEADER_PREFIX + name)))));
  }
  return states;
}
