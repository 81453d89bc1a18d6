import { plainOrQuoted, quote } from '../../../kernel/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { durationOption } from '../frame/options.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { pauseFor } from '../frame/pause.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { totalsOf, workOf } from '../../views/roll.js';
import { pollInstances, tellMissing } from '../frame/roll.js';

/** As often as instances answer. */
const LOOK_EVERY_MS = 1_000;

export const watch = defineCommand({
  name: 'watch',
  summary: 'Prints grants, waits, losses and releases as they happen, until you press Ctrl-C.',
  args: [{ name: 'prefix' }],
  options: { for: durationOption('Stops after this time.') },
  details: [
    'Polls the instances once a second and prints what has changed, so it can miss a lease that lasts less than a second.',
  ],
  examples: ['watch', 'watch order: --json'],
  async run({ args, options, output, session, signal }) {
    const opened = await session();
    const prefix = args[0] ?? '';
    const endsAt = performance.now() + (options.for ?? Infinity);
    let before = await pollInstances(opened, { prefix });
    tellMissing(before, output);
    output.note(`${summaryOf(before)}. Changes follow.`);
    while (!signal.aborted) {
      const leftMs = endsAt - performance.now();
      if (leftMs <= 0) break;
      await pauseFor(Math.min(LOOK_EVERY_MS, leftMs), signal);
      if (signal.aborted) break;
      const after = await pollInstances(opened, { prefix });
      for (const change of changesBetween(before, after)) {
        if (output.format === 'json') output.printJson({ keyPrefix: opened.keyPrefix, ...change });
        else output.line(`${new Date(change.at).toISOString()} ${textOf(change)}`);
      }
      before = after;
    }
    return 'done';
  },
});

/** What has changed between two looks. */
interface Change {
  /** By the clock of Redis. */
  readonly at: number;
  /**
   * `gone`: the instance does not answer any more, and so its leases may end. `gaveUp`: the call does not wait any more,
   * and its instance does not hold the resource. `lost`: leases of the instance were lost.
   */
  readonly event: 'granted' | 'released' | 'waits' | 'gaveUp' | 'lost' | 'appeared' | 'gone' | 'leads' | 'leadsNoMore';
  readonly instance: string;
  readonly resource?: string;
  readonly fencingToken?: number;
  readonly work?: string;
  /** How long it was held, or waited for, in milliseconds. */
  readonly forMs?: number;
  readonly count?: number;
}

export function changesBetween(before: FleetReport, after: FleetReport): Change[] {
  const at = after.askedAt;
  const changes: Change[] = [];
  const earlier = new Map(before.instances.map((each) => [each.instanceId, each]));
  for (const now of after.instances) {
    const was = earlier.get(now.instanceId);
    earlier.delete(now.instanceId);
    const { instanceId: instance } = now;
    if (!was) changes.push({ at, event: 'appeared', instance });
    const isIn = (list: readonly { readonly resource: string }[], resource: string): boolean =>
      list.some((each) => each.resource === resource);
    const tokens = new Set(was?.held.map(({ fencingToken }) => fencingToken));
    for (const { resource, fencingToken, ...lease } of now.held) {
      if (tokens.delete(fencingToken)) continue;
      changes.push({ at, event: 'granted', instance, resource, fencingToken, work: workOf(lease) });
    }
    // One that is not listed any more may have had no room in the answer.
    const isWhole = now.more.held === 0 && was?.more.held === 0;
    for (const { resource, fencingToken, heldMs, ...lease } of isWhole ? was.held : []) {
      if (!tokens.has(fencingToken)) continue;
      changes.push({ at, event: 'released', instance, resource, fencingToken, work: workOf(lease), forMs: heldMs });
    }
    const calls = new Set(was?.waiting.map(({ call }) => call));
    for (const { call, resource, waitedMs, group } of now.waiting) {
      if (calls.delete(call)) continue;
      changes.push({ at, event: 'waits', instance, resource, work: workOf({ group }), forMs: waitedMs });
    }
    for (const { call, resource, waitedMs, group } of now.more.waiting === 0 ? (was?.waiting ?? []) : []) {
      if (!calls.has(call) || isIn(now.held, resource)) continue;
      changes.push({ at, event: 'gaveUp', instance, resource, work: workOf({ group }), forMs: waitedMs });
    }
    const lost = (now.lastMinute?.lost ?? 0) - (was?.lastMinute?.lost ?? 0);
    if (was && lost > 0) changes.push({ at, event: 'lost', instance, count: lost });
    for (const { name, isLeader } of now.leaderships) {
      const led = was?.leaderships.some((each) => each.name === name && each.isLeader) ?? false;
      if (isLeader !== led) changes.push({ at, event: isLeader ? 'leads' : 'leadsNoMore', instance, resource: name });
    }
  }
  for (const instance of earlier.keys()) changes.push({ at, event: 'gone', instance });
  return changes;
}

function textOf({ event, instance, resource = '', fencingToken, work, forMs, count }: Change): string {
  const who = plainOrQuoted(instance);
  const by = work ? ` (${work})` : '';
  const what = quote(resource);
  const token = fencingToken === undefined ? '' : `, token ${fencingToken}`;
  const after = longDuration(forMs ?? 0);
  return {
    granted: `granted    ${what} to ${who}${by}${token}`,
    released: `released   ${what} by ${who}${by}${token}, held for ${after}`,
    waits: `waits      ${who}${by} for ${what}`,
    gaveUp: `gave up    ${who}${by} on ${what}, or was granted it for a moment, after ${after}`,
    lost: `lost       ${who} has lost ${count} of its leases`,
    appeared: `appeared   ${who}`,
    gone: `gone       ${who} no longer answers`,
    leads: `leads      ${who} leads ${what}`,
    leadsNoMore: `steps down ${who} no longer leads ${what}`,
  }[event];
}

function summaryOf(roll: FleetReport): string {
  const { held, waiting } = totalsOf(roll);
  return `${roll.instances.length} instances, ${held} held, ${waiting} waiting`;
}
