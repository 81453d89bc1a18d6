import { plainOrQuoted, quote, quoteSome } from '../../../kernel/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { CliError } from '../frame/exit-codes.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { durationCell } from '../frame/output.js';
import type { FleetInstance, FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { workOf } from '../../views/roll.js';
import { labelText } from '../../views/locks.js';
import { pollInstances, SCAN_CUT } from '../frame/roll.js';

export const who = defineCommand({
  name: 'who',
  summary: 'Shows what one instance holds and waits for, and which lines of its code do so.',
  args: [{ name: 'instance', isRequired: true }],
  options: {},
  details: [
    'You can pass a part of the id, such as the host or the process id, if only one instance matches.',
    'If the instance does not answer, shows its locks in Redis.',
  ],
  examples: ['who api-3:4711', 'who 4711'],
  async run({ args, output, session }) {
    const [asked] = args as [string];
    const opened = await session();
    const { keyPrefix } = opened;
    let fleet = await pollInstances(opened);
    let matching = matchingIn(fleet, asked);
    const isHeard = fleet.instances.some(({ instanceId }) => matching.includes(instanceId));
    if (!isHeard) {
      // A holder that no call waits for is only found in Redis.
      fleet = await pollInstances(opened, { scan: true });
      matching = matchingIn(fleet, asked);
    }
    if (matching.length > 1)
      throw new CliError(
        'usage',
        `Several instances match ${quote(asked)}: ${quoteSome(matching, 10)}. Pass more of the id.`,
      );
    const [instanceId] = matching;
    if (instanceId === undefined) {
      const ids = idsIn(fleet);
      const known = ids.length === 0 ? 'No instance has answered.' : `Connected instances: ${quoteSome(ids, 10)}.`;
      const held = fleet.isScanCut ? SCAN_CUT : 'No lease in Redis belongs to such an instance.';
      throw new CliError('refused', `No instance ${quote(asked)} is connected. ${held} ${known}`);
    }
    const instance = fleet.instances.find((each) => each.instanceId === instanceId);
    if (instance) {
      output.print({ json: { keyPrefix, ...instance }, shown: shownOf(instance) });
      const { held, waiting } = instance.more;
      if (held + waiting === 0) return 'done';
      output.note(`Not everything is listed: ${held} more held, ${waiting} more waiting.`);
      return 'partial';
    }
    const held = fleet.unlisted.filter((each) => each.instanceId === instanceId);
    const isSilent = fleet.silent.includes(instanceId);
    const isDead = held.some(({ life }) => life === 'dead');
    output.print({
      json: { keyPrefix, instanceId, isSilent, isDead, held },
      shown: [heldTable(held.map((each) => ({ ...each, leftMs: each.ttlMs, work: labelText(each) })))],
    });
    if (fleet.isScanCut) output.note(SCAN_CUT);
    const name = plainOrQuoted(instanceId);
    output.note(
      isSilent
        ? `${name} is connected but does not answer: it is frozen, too busy, cut off from messages, or runs an older version of nestjs-redis-lock.`
        : isDead
          ? `${name} is dead: it has no subscription, and has missed two renewals.`
          : `${name} is not known to be subscribed: its process may be dead, or its Redis user has no permission to subscribe. To see whether it renews a lease, run: npx nestjs-redis-lock why <resource>`,
    );
    return 'partial';
  },
});

function idsIn({ instances, silent, unlisted }: FleetReport): string[] {
  const ids = [...instances, ...unlisted].map(({ instanceId }) => instanceId);
  return [...new Set([...ids, ...silent])].sort();
}

/** The whole id, or a part of it. */
function matchingIn(fleet: FleetReport, asked: string): string[] {
  const ids = idsIn(fleet);
  return ids.includes(asked) ? [asked] : ids.filter((id) => id.includes(asked));
}

function shownOf(instance: FleetInstance) {
  const { held, waiting, leaderships, jobs } = instance;
  const leads = leaderships.map(({ name, isLeader }) => `${name}${isLeader ? ' (leads)' : ''}`);
  const about = [
    `${plainOrQuoted(instance.instanceId)}: version ${instance.version}, up for ${longDuration(instance.uptimeMs)}`,
    `${instance.hearing ? 'receives messages' : 'receives no messages'}`,
    ...(leads.length > 0 ? [`campaigns for ${leads.join(', ')}`] : []),
    ...(jobs.length > 0 ? [`has the jobs ${jobs.join(', ')}`] : []),
  ];
  return [
    `${about.join('; ')}.`,
    heldTable(held.map((each) => ({ ...each, work: workOf(each) }))),
    {
      columns: ['WAITS FOR', 'MODE', 'WAITED', 'PLACE', 'WORK', 'ALSO HOLDS'],
      rows: waiting.map((each) => [
        each.resource,
        each.mode,
        durationCell(each.waitedMs),
        each.place,
        workOf(each),
        each.holds.map(({ resource }) => resource).join(' '),
      ]),
      ifEmpty: 'This instance waits for nothing.',
    },
  ];
}

type Cells = 'resource' | 'mode' | 'fencingToken' | 'heldMs' | 'leftMs';

function heldTable(all: readonly (Pick<FleetInstance['held'][number], Cells> & { readonly work: string })[]) {
  const rows = all.map(({ resource, mode, fencingToken, heldMs, leftMs, work }) => [
    resource,
    mode,
    fencingToken,
    durationCell(heldMs),
    durationCell(leftMs),
    work,
  ]);
  return {
    columns: ['HOLDS', 'MODE', 'TOKEN', 'HELD FOR', 'LEFT', 'WORK'],
    rows,
    ifEmpty: 'This instance holds nothing.',
  };
}
