import { plainOrQuoted, quoteSome } from '../../../kernel/util/quoted.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { oldestWaitMs, totalsOf } from '../../views/roll.js';
import { defineCommand } from '../frame/command.js';
import { type FoundPrefixes, perhapsMore } from '../frame/connection.js';
import { findingTable } from '../frame/findings.js';
import type { Table } from '../frame/output.js';
import { surveyOf, tellMissing } from '../frame/roll.js';
import type { Session } from '../frame/session.js';

/** Each is asked at the same moment. */
const MAX_APPLICATIONS = 10;
const MAX_LEADERS = 5;

export const status = defineCommand({
  name: 'status',
  summary: 'Shows all problems, the worst first, and an overview of the fleet.',
  args: [],
  options: {},
  details: [
    `Without --prefix, shows up to ${MAX_APPLICATIONS} applications on this Redis.`,
    'Exits with 3 if locks are unavailable, and with 5 if an instance did not answer.',
  ],
  examples: ['status', 'status --prefix shop'],
  async run({ output, applications }) {
    const { sessions, found } = await applications(MAX_APPLICATIONS);
    const looks = await Promise.all(sessions.map(lookAt));
    const hasSeveral = sessions.length > 1;
    output.print({
      json: {
        where: sessions[0]!.where,
        prefixes: found?.prefixes,
        knowsAllPrefixes: found?.isComplete,
        applications: looks.map(jsonOf),
      },
      shown: [
        ...(found && hasSeveral ? [prefixTable(found)] : []),
        ...looks.flatMap((look) => {
          const { findings, keyPrefix } = look;
          return [findingTable(findings, output.format, hasSeveral ? keyPrefix : undefined), tableOf(look)];
        }),
      ],
    });
    let isPartial = false;
    for (const { fleet, keyPrefix } of looks) {
      const note = (line: string): void => output.note(hasSeveral ? `${keyPrefix}: ${line}` : line);
      if (!fleet) note('The instances cannot be queried.');
      isPartial = (fleet ? tellMissing(fleet, { note }) : true) || isPartial;
    }
    const left = found?.prefixes.slice(sessions.length) ?? [];
    if (left.length > 0) {
      output.note(`Skipped, because there are many: ${quoteSome(left, 20)}. Choose one with --prefix.`);
      isPartial = true;
    }
    if (looks.some(({ fleet, health }) => health.status === 'down' || (!fleet && health.status === 'notTried'))) {
      return 'redis';
    }
    return isPartial ? 'partial' : 'done';
  },
});

async function lookAt(session: Session) {
  const { keyPrefix, where } = session;
  return { keyPrefix, where, ...(await surveyOf(session)) };
}

type Looked = Awaited<ReturnType<typeof lookAt>>;

function jsonOf(look: Looked): object {
  const { keyPrefix, health, fleet, findings } = look;
  const { topology, status, roundTripMs, problems } = health;
  return {
    keyPrefix,
    topology,
    locks: { status, roundTripMs, problems },
    findings,
    fleet: fleet && {
      heard: fleet.instances.length,
      silent: fleet.silent,
      ...totalsOf(fleet),
      oldestWaitMs: oldestWaitMs(fleet) ?? 0,
      leaders: leadersIn(look),
      deadlocks: fleet.deadlocks,
    },
    jobs: look.jobs && jobCounts(look.jobs),
  };
}

function prefixTable(found: FoundPrefixes): Table {
  const { prefixes } = found;
  const named = prefixes.slice(0, 20).map(plainOrQuoted).join(', ') + perhapsMore(found);
  return { columns: ['APPLICATIONS', `${prefixes.length}`], rows: [['prefixes', named]] };
}

const LOCKS = {
  up: 'available',
  degraded: 'available',
  down: 'unavailable',
  notTried: 'not tried: this user is read-only',
} as const;

function tableOf(look: Looked): Table {
  const { keyPrefix, where, health, fleet, jobs } = look;
  const { status, topology, roundTripMs } = health;
  const tookMs =
    status === 'notTried' || roundTripMs === null ? '' : `, a write took ${Number(roundTripMs.toFixed(1))} ms`;
  const rows = [
    ['redis', `${topology} at ${where}, prefix ${keyPrefix}`],
    ['locks', LOCKS[status] + tookMs],
  ];
  if (fleet) {
    const { instances, silent } = fleet;
    const { held, waiting } = totalsOf(fleet);
    const leaders = leadersIn(look);
    const named = leaders.slice(0, MAX_LEADERS).map((each) => {
      return `${plainOrQuoted(each.name)} at ${plainOrQuoted(each.instanceId)}`;
    });
    rows.push(
      ['instances', `${instances.length} answered, ${silent.length} silent`],
      ['held', `${held}`],
      ['waiting', waiting === 0 ? '0' : `${waiting}, the oldest for ${longDuration(oldestWaitMs(fleet) ?? 0)}`],
      ['leaders', `${leaders.length}${leaders.length > 0 ? `: ${named.join(', ')}` : ''}`],
    );
  }
  if (jobs) {
    const { known, running, paused } = jobCounts(jobs);
    rows.push(['jobs', `${known}: ${running} running, ${paused.length} paused`]);
  }
  return { columns: ['STATUS', status === 'notTried' ? 'seen from outside' : status], rows };
}

function leadersIn({ fleet }: Looked): { readonly name: string; readonly instanceId: string }[] {
  return (fleet?.instances ?? []).flatMap(({ instanceId, leaderships }) =>
    leaderships.flatMap(({ name, isLeader }) => (isLeader ? [{ name, instanceId }] : [])),
  );
}

function jobCounts(jobs: NonNullable<Looked['jobs']>) {
  const all = jobs.map(({ job }) => job);
  return {
    known: all.length,
    running: all.filter(({ running }) => running).length,
    paused: all.filter(({ pause }) => pause).map(({ name }) => name),
    missed: all.filter(({ missed }) => missed > 0).length,
  };
}
