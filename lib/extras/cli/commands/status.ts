import { describeDeadlock } from '../../../kernel/api/errors.js';
import { plainOrQuoted, quote, quoteSome } from '../../../kernel/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { type FoundPrefixes, perhapsMore } from '../frame/connection.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { type CellValue, durationCell, type Table } from '../frame/output.js';
import { type Roll, totalsOf, withoutAnswers, workOf } from '../../views/roll.js';
import { deadHolders, longestWaits } from '../../views/waits.js';
import { pollInstances, tellMissing } from '../frame/roll.js';
import type { Session } from '../frame/session.js';
import { NO_OWN_JOBS } from './jobs.js';

/** Each is asked at the same moment. */
const MAX_APPLICATIONS = 10;

export const status = defineCommand({
  name: 'status',
  summary: 'Shows the fleet at a glance: Redis, instances, what is held and waited for, leaders and jobs.',
  args: [],
  options: {},
  details: [
    `Without --prefix, it shows each application that it finds on that Redis, at most ${MAX_APPLICATIONS}.`,
    'Exits with 3 if locks are unavailable, and with 5 if some instances have not answered.',
  ],
  examples: ['status', 'status --prefix shop'],
  async run({ output, applications }) {
    const { sessions, found } = await applications(MAX_APPLICATIONS);
    const looks = await Promise.all(sessions.map(lookAt));
    const hasSeveral = sessions.length > 1;
    output.print({
      json: {
        where: sessions[0]!.where,
        ...(found && { prefixes: found.prefixes, knowsAllPrefixes: found.isComplete }),
        applications: looks.map(jsonOf),
      },
      shown: [
        ...(found && hasSeveral ? [prefixTable(found)] : []),
        ...looks.flatMap((look) => tablesOf(look, hasSeveral)),
      ],
    });
    let isPartial = false;
    for (const { roll, keyPrefix } of looks) {
      const note = (line: string): void => output.note(hasSeveral ? `${keyPrefix}: ${line}` : line);
      if (!roll) note('The instances cannot be queried.');
      isPartial = (roll ? tellMissing(roll, { note }) : true) || isPartial;
    }
    const left = found?.prefixes.slice(sessions.length) ?? [];
    if (left.length > 0) {
      output.note(`Skipped, because there are many: ${quoteSome(left, 20)}. Choose one with --prefix.`);
      isPartial = true;
    }
    if (looks.some(({ roll, state }) => state === 'down' || (!roll && state === 'notTried'))) return 'redis';
    return isPartial ? 'partial' : 'done';
  },
});

/** What can be said of one application. */
async function lookAt(session: Session) {
  const { client, keyPrefix, where, jobs: records } = session;
  const [health, mayOnlyLook, roll, jobs] = await Promise.all([
    client.health(),
    session.mayOnlyLook(),
    pollInstances(session).catch(withoutAnswers),
    records.list(NO_OWN_JOBS).catch(withoutAnswers),
  ]);
  const { topology, roundTripMs } = health;
  return {
    keyPrefix,
    where,
    topology,
    roundTripMs,
    // Whether others get locks, such a user cannot find out.
    state: mayOnlyLook ? ('notTried' as const) : health.status,
    problems: mayOnlyLook ? health.problems.filter(({ code }) => code !== 'NOPERM') : health.problems,
    roll,
    fleet: roll && countsOf(roll),
    jobs: jobs && {
      known: jobs.length,
      running: jobs.filter((job) => job.running).length,
      paused: jobs.filter(({ pause }) => pause).map(({ name }) => name),
      missed: jobs.filter((job) => job.missed > 0).length,
    },
  };
}

type Look = Awaited<ReturnType<typeof lookAt>>;

function jsonOf({ keyPrefix, topology, state, roundTripMs, problems, fleet, jobs }: Look): object {
  return {
    keyPrefix,
    topology,
    locks: { status: state, roundTripMs, problems },
    ...(fleet && { fleet }),
    ...(jobs && { jobs }),
  };
}

function prefixTable(found: FoundPrefixes): Table {
  const { prefixes } = found;
  const named = prefixes.slice(0, 20).map(plainOrQuoted).join(', ') + perhapsMore(found);
  return { columns: ['APPLICATIONS', `${prefixes.length}`], rows: [['prefixes', named]] };
}

function tablesOf(look: Look, isNamed: boolean): Table[] {
  const { keyPrefix, where, topology, state, roundTripMs, problems, fleet, jobs } = look;
  const line = (name: string, value: CellValue): CellValue[] => [name, value];
  return [
    {
      columns: ['STATUS', STATES[state]],
      rows: [
        ...(isNamed ? [line('application', keyPrefix)] : []),
        line('redis', `${topology} at ${where}, prefix ${keyPrefix}`),
        line('locks', LOCKS[state] + (state === 'notTried' ? '' : roundTrip(roundTripMs))),
        ...problems.map(({ message }) => line('problem', message)),
        ...(fleet ? fleetLines(fleet).map(([name, value]) => line(name, value)) : []),
        ...(jobs ? [line('jobs', jobLine(jobs))] : []),
      ],
    },
    ...(fleet ? [{ columns: WAIT_COLUMNS, rows: fleet.longestWaits.map(waitRow) }] : []),
  ];
}

const STATES = { up: 'up', degraded: 'degraded', down: 'down', notTried: 'seen from outside' } as const;
const LOCKS = {
  up: 'available',
  degraded: 'available',
  down: 'unavailable',
  notTried: 'not tried: this user is read-only',
} as const;

const LONGEST = 5;
const WAIT_COLUMNS = ['LONGEST WAITS', 'WAITED', 'BY', 'WORK', 'HELD BY'];

type FleetCounts = ReturnType<typeof countsOf>;

function countsOf(roll: Roll) {
  const { instances, silent } = roll;
  const longest = longestWaits(roll, LONGEST).map(({ resource, waitedMs, instanceId, group, holds, heldBy }) => {
    return { resource, waitedMs, instanceId, group, holds, ...(heldBy !== undefined && { heldBy }) };
  });
  return {
    deadlocks: roll.deadlocks,
    heard: instances.length,
    silent,
    deaf: instances.flatMap(({ instanceId, hearing }) => (hearing ? [] : [instanceId])),
    ...totalsOf(roll),
    oldestWaitMs: longest[0]?.waitedMs ?? 0,
    deadHolders: deadHolders(roll).map(({ resource, instanceId, ttlMs }) => ({ resource, instanceId, ttlMs })),
    leaders: instances.flatMap(({ instanceId, leaderships }) =>
      leaderships.flatMap(({ name, isLeader }) => (isLeader ? [{ name, instanceId }] : [])),
    ),
    longestWaits: longest,
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
    ['instances', `${heard} answered, ${silent.length} silent${silent.length > 0 ? `: ${quoteSome(silent, 3)}` : ''}`],
    ...(deaf.length > 0 ? [['deaf', `receive no messages: ${quoteSome(deaf, 3)}`] as [string, string]] : []),
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

function jobLine({ known, running, missed, paused }: NonNullable<Look['jobs']>): string {
  const parts = [`${running} running`, `${missed} with missed ticks`];
  if (paused.length > 0) parts.push(`paused: ${quoteSome(paused, 3)}`);
  return `${known}: ${parts.join(', ')}`;
}

function roundTrip(ms: number | null): string {
  return ms === null ? '' : `, a write took ${Number(ms.toFixed(1))} ms`;
}
