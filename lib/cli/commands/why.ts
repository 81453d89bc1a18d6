import { type Holder, renewedMsAgo } from '../../core/api/holder.js';
import type { LockExplanation } from '../../core/explain/explanation.js';
import type { LockState } from '../../core/store/lock-state.js';
import { fencingTickOf } from '../../core/store/fencing-token.js';
import { plainOrQuoted } from '../../core/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { flagOption } from '../frame/options.js';
import { longDuration } from '../frame/output.js';
import { pauseFor } from '../frame/pause.js';
import { callRoll, type InstanceLife, lifeOf, type Roll, withoutAnswers } from '../frame/roll.js';

/** Between two looks. A renewal that is due soon is waited for. */
const LOOK_AGAIN_MS = 1_000;
/** A third of the default lease, and more. */
const MOST_WAITED_MS = 11_000;
const WATCH_EVERY_MS = 2_000;
/** A renewal that is due, and may be on its way. */
const SLACK_MS = 300;
const MOST_NAMED = 3;
/** The times of a look are whole milliseconds. */
const ROUNDED_MS = 5;

export const why = defineCommand({
  name: 'why',
  summary: 'Says why a call cannot get a resource: who holds it, whether the holder lives, and what to do.',
  args: [{ name: 'resource', isRequired: true }],
  options: { watch: flagOption('Goes on looking, every two seconds, until Ctrl-C.') },
  details: [
    'It looks twice, a moment apart: a lease that is renewed in between has a living holder. And it asks the process of',
    'the holder whether it answers.',
  ],
  examples: ['why order:7', 'why cron:nightly-report --watch'],
  async run({ args, options, output, terminal, session, signal }) {
    const [resource] = args as [string];
    const opened = await session();
    const { client, keyPrefix } = opened;
    // Where the instances cannot be asked, the leases alone say it.
    const rollFor = ({ holders }: LockState): Promise<Roll | undefined> =>
      holders.length === 0 ? Promise.resolve(undefined) : callRoll(opened).catch(withoutAnswers);
    let seen = await client.operators.explain(resource);
    let roll = await rollFor(seen.state);
    do {
      const waitMs = options.watch ? WATCH_EVERY_MS : untilNextLook(seen.state, roll);
      if (seen.state.holders.length > 0) terminal.progress(`Looks again in ${longDuration(waitMs)} …`);
      if (seen.state.holders.length > 0 || options.watch) await pauseFor(waitMs, signal);
      const again = await client.operators.explain(resource);
      roll = await rollFor(again.state);
      const conclusions = conclusionsOf(seen.state, again.state, roll);
      const sentences = sentencesOf(again, roll);
      const { cause, state } = again;
      output.print({
        json: { keyPrefix, resource, cause, conclusions, sentences, state },
        shown: [...conclusions, ...sentences],
      });
      seen = again;
    } while (options.watch && !signal.aborted);
    return 'done';
  },
});

/** The leases alone say that nothing is wrong, until a renewal is overdue. The process may say that something is. */
function sentencesOf({ sentences, cause, state }: LockExplanation, roll: Roll | undefined): readonly string[] {
  const isAlive = ({ instanceId }: Holder): boolean => {
    const life = roll && lifeOf(instanceId, roll);
    return life === undefined || life === 'answers' || life === 'unheard';
  };
  return cause === 'inUse' && !state.holders.every(isAlive) ? sentences.slice(0, -1) : sentences;
}

/** So long that the next renewal shows, if that is soon, or if nothing else says whether the holder lives. */
function untilNextLook({ holders }: LockState, roll: Roll | undefined): number {
  const dueMs = holders.map((holder) => {
    const ms = holder.leaseMs / 3 - renewedMsAgo(holder) + SLACK_MS;
    const isHeard = roll !== undefined && lifeOf(holder.instanceId, roll) === 'answers';
    return ms <= (isHeard ? LOOK_AGAIN_MS : MOST_WAITED_MS) ? ms : 0;
  });
  return Math.max(LOOK_AGAIN_MS, ...dueMs);
}

/** What two looks, and the process itself, say of each holder. */
export function conclusionsOf(first: LockState, second: LockState, roll: Roll | undefined): string[] {
  return second.holders.slice(0, MOST_NAMED).map((holder) => {
    const { instanceId, fencingToken } = holder;
    const before = first.holders.find((each) => fencingTickOf(each.fencingToken) === fencingTickOf(fencingToken));
    const life = roll && lifeOf(instanceId, roll);
    const place = roll && callSiteIn(roll, instanceId, second.resource);
    return `${plainOrQuoted(instanceId)}: ${conclusionOf(before, holder, life)}${place ? ` It was acquired at ${place}.` : ''}`;
  });
}

function conclusionOf(before: Holder | undefined, holder: Holder, life: InstanceLife | undefined): string {
  const left = longDuration(holder.ttlMs);
  if (holder.isKept) return `released, and stays taken for another ${left}.`;
  if (!before) return 'granted between two looks: the holder lives.';
  const betweenMs = holder.heldMs - before.heldMs;
  if (holder.ttlMs > before.ttlMs - betweenMs + ROUNDED_MS) return 'renewed between two looks: the holder lives.';
  const agoMs = renewedMsAgo(holder);
  const isOverdue = agoMs > holder.leaseMs / 2;
  if (life === 'answers') {
    return isOverdue
      ? `not renewed for ${longDuration(agoMs)}, but its process answers: it does not renew this lease. Free in ${left}.`
      : `its process answers: the holder lives. The lease has ${left} left.`;
  }
  if (life === 'silent') {
    return `its process is connected, but does not answer: it is frozen, too busy, deaf, or of an older version. Free in ${left} unless it renews.`;
  }
  if (isOverdue) return `not renewed: the holder is dead, free in ${left}.`;
  const dueMs = holder.leaseMs / 3 - agoMs;
  const next =
    dueMs > 0 ? `a renewal would be due in ${longDuration(dueMs)}` : `a renewal is ${longDuration(-dueMs)} late`;
  if (life === 'gone') return `no such process is connected: the holder is most likely dead, free in ${left}; ${next}.`;
  if (dueMs < -SLACK_MS) return `a renewal is ${longDuration(-dueMs)} late: the holder may be dead, free in ${left}.`;
  return `no renewal was due between two looks: the next one is due in ${longDuration(Math.max(0, dueMs))}.`;
}

function callSiteIn({ instances }: Roll, instanceId: string, resource: string): string | undefined {
  const instance = instances.find((each) => each.instanceId === instanceId);
  return instance?.held.find((each) => each.resource === resource)?.callSite;
}
