import { describeDeadlock } from '../../core/api/errors.js';
import { plainOrQuoted, quote, quoteSome } from '../../core/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { type CellValue, durationCell, longDuration } from '../frame/output.js';
import { callRoll, type Roll, tellMissing, totalsOf, withoutAnswers, workOf } from '../frame/roll.js';
import { NO_OWN_JOBS } from './jobs.js';

export const status = defineCommand({
  name: 'status',
  summary: 'Shows the fleet at one look: Redis, instances, what is held and waited for, leaders and jobs.',
  args: [],
  options: {},
  details: ['It ends with 3 where locks cannot be had, and with 5 where not all instances have answered.'],
  examples: ['status'],
  async run({ output, session }) {
    const opened = await session();
    const { client, store, keyPrefix, where, jobs: records } = opened;
    const [health, mayOnlyLook, roll, jobs] = await Promise.all([
      client.health(),
      store
        .missingRights()
        .then((rights) => rights.some(({ needed }) => TO_CHANGE.every((rule) => needed.includes(rule)))),
      callRoll(opened).catch(withoutAnswers),
      records.list(NO_OWN_JOBS).catch(withoutAnswers),
    ]);
    const { topology, roundTripMs } = health;
    // Whether others get locks, such a user cannot find out.
    const state = mayOnlyLook ? 'notTried' : health.status;
    const problems = mayOnlyLook ? health.problems.filter(({ code }) => code !== 'NOPERM') : health.problems;
    const fleet = roll && countsOf(roll);
    const paused = jobs?.filter(({ pause }) => pause).map(({ name }) => name) ?? [];
    const running = jobs?.filter((job) => job.running).length ?? 0;
    const missed = jobs?.filter((job) => job.missed > 0).length ?? 0;
    const line = (name: string, value: CellValue): CellValue[] => [name, value];
    output.print({
      json: {
        keyPrefix,
        where,
        topology,
        locks: { status: state, roundTripMs, problems },
        ...(fleet && { fleet }),
        ...(jobs && { jobs: { known: jobs.length, running, paused, missed } }),
      },
      shown: [
        {
          columns: ['STATUS', STATES[state]],
          rows: [
            line('redis', `${topology} at ${where}, prefix ${keyPrefix}`),
            line('locks', LOCKS[state] + (state === 'notTried' ? '' : roundTrip(roundTripMs))),
            ...problems.map(({ message }) => line('problem', message)),
            ...(fleet ? fleetLines(fleet).map(([name, value]) => line(name, value)) : []),
            ...(jobs ? [line('jobs', jobLine(jobs.length, running, missed, paused))] : []),
          ],
        },
        ...(fleet ? [{ columns: WAIT_COLUMNS, rows: fleet.longestWaits.map(waitRow) }] : []),
      ],
    });
    const isPartial = roll ? tellMissing(roll, output) : true;
    if (!roll) output.note('The instances cannot be asked.');
    if (state === 'down' || (!roll && state === 'notTried')) return 'redis';
    return isPartial ? 'partial' : 'done';
  },
});

/** Who lacks all of these may look, and is meant to. */
const TO_CHANGE = ['+set', '+del'];
const STATES = { up: 'up', degraded: 'degraded', down: 'down', notTried: 'seen from outside' } as const;
const LOCKS = {
  up: 'can be had',
  degraded: 'can be had',
  down: 'cannot be had',
  notTried: 'not tried: this user may only look',
} as const;

const LONGEST = 5;
const WAIT_COLUMNS = ['LONGEST WAITS', 'WAITED', 'BY', 'WORK', 'HELD BY'];

type FleetCounts = ReturnType<typeof countsOf>;

function countsOf(roll: Roll) {
  const { instances, silent, unlisted } = roll;
  const holders = new Map(
    instances.flatMap(({ instanceId, held }) => held.map(({ resource }) => [resource, instanceId] as const)),
  );
  for (const { resource, instanceId, hasAnswered } of unlisted) {
    if (!hasAnswered) holders.set(resource, `${instanceId} (does not answer)`);
  }
  const longestWaits = instances
    .flatMap(({ instanceId, waiting }) => waiting.map((wait) => ({ ...wait, instanceId })))
    .sort((a, b) => b.waitedMs - a.waitedMs)
    .slice(0, LONGEST)
    .map(({ resource, waitedMs, instanceId, group, holds }) => {
      const heldBy = holders.get(resource);
      return { resource, waitedMs, instanceId, group, holds, ...(heldBy !== undefined && { heldBy }) };
    });
  return {
    deadlocks: roll.deadlocks,
    heard: instances.length,
    silent,
    deaf: instances.flatMap(({ instanceId, hearing }) => (hearing ? [] : [instanceId])),
    ...totalsOf(roll),
    oldestWaitMs: longestWaits[0]?.waitedMs ?? 0,
    deadHolders: unlisted
      .filter(({ hasAnswered }) => !hasAnswered)
      .map(({ resource, instanceId, ttlMs }) => ({ resource, instanceId, ttlMs })),
    leaders: instances.flatMap(({ instanceId, leaderships }) =>
      leaderships.flatMap(({ name, isLeader }) => (isLeader ? [{ name, instanceId }] : [])),
    ),
    longestWaits,
  };
}

function fleetLines(fleet: FleetCounts): [string, string][] {
  const { heard, silent, deaf, deadHolders, leaders, held, waiting, oldestWaitMs } = fleet;
  const dead = deadHolders.map(({ resource, instanceId, ttlMs }): [string, string] => [
    'no answer',
    `${plainOrQuoted(instanceId)} holds ${quote(resource)}: free in ${longDuration(ttlMs)} unless it is renewed`,
  ]);
  return [
    ...fleet.deadlocks.map((calls): [string, string] => [
      'DEADLOCK',
      describeDeadlock(calls, quote(calls[0]!.instanceId)),
    ]),
    ['instances', `${heard} heard, ${silent.length} silent${silent.length > 0 ? `: ${quoteSome(silent, 3)}` : ''}`],
    ...(deaf.length > 0 ? [['deaf', `hear no messages: ${quoteSome(deaf, 3)}`] as [string, string]] : []),
    ['held', `${held}`],
    ['waiting', waiting === 0 ? '0' : `${waiting}, the oldest for ${longDuration(oldestWaitMs)}`],
    ...dead.slice(0, LONGEST),
    [
      'leaders',
      leaders.length === 0
        ? '0'
        : `${leaders.length}: ${leaders
            .slice(0, LONGEST)
            .map(({ name, instanceId }) => `${plainOrQuoted(name)} at ${plainOrQuoted(instanceId)}`)
            .join(', ')}`,
    ],
  ];
}

function waitRow({ resource, waitedMs, instanceId, group, heldBy }: FleetCounts['longestWaits'][number]): CellValue[] {
  return [resource, durationCell(waitedMs), instanceId, workOf({ group }), heldBy];
}

function jobLine(known: number, running: number, missed: number, paused: readonly string[]): string {
  const parts = [`${running} running`, `${missed} with missed ticks`];
  if (paused.length > 0) parts.push(`paused: ${quoteSome(paused, 3)}`);
  return `${known}: ${parts.join(', ')}`;
}

function roundTrip(ms: number | null): string {
  return ms === null ? '' : `, a write took ${Number(ms.toFixed(1))} ms`;
}
