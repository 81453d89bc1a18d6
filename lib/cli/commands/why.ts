import { type Holder, renewedMsAgo } from '../../core/api/holder.js';
import type { LockExplanation } from '../../core/explain/explanation.js';
import type { LockState } from '../../core/store/lock-state.js';
import { plainOrQuoted } from '../../core/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { flagOption } from '../frame/options.js';
import { longDuration } from '../frame/output.js';
import { pauseFor } from '../frame/pause.js';

/** Between two looks. A renewal that is due soon is waited for. */
const LOOK_AGAIN_MS = 1_000;
const MOST_WAITED_MS = 4_000;
const WATCH_EVERY_MS = 2_000;
/** A renewal that is due, and may be on its way. */
const SLACK_MS = 300;
/** The times of a look are whole milliseconds. */
const ROUNDED_MS = 5;

export const why = defineCommand({
  name: 'why',
  summary: 'Says why a call cannot get a resource: who holds it, whether the holder lives, and what to do.',
  args: [{ name: 'resource', isRequired: true }],
  options: { watch: flagOption('Goes on looking, every two seconds, until Ctrl-C.') },
  details: ['It looks twice, a moment apart: a lease that is renewed in between has a living holder.'],
  examples: ['why order:7', 'why cron:nightly-report --watch'],
  async run({ args, options, output, terminal, session, signal }) {
    const [resource] = args as [string];
    const { client, keyPrefix } = await session();
    let seen = await client.operators.explain(resource);
    do {
      const waitMs = options.watch ? WATCH_EVERY_MS : untilNextLook(seen.state);
      if (seen.state.holders.length > 0) terminal.progress(`Looks again in ${longDuration(waitMs)} …`);
      if (seen.state.holders.length > 0 || options.watch) await pauseFor(waitMs, signal);
      const again = await client.operators.explain(resource);
      const verdicts = verdictsOf(seen.state, again.state);
      output.print({ json: bodyOf(keyPrefix, again, verdicts), shown: [...verdicts, ...again.sentences] });
      seen = again;
    } while (options.watch && !signal.aborted);
    return 'done';
  },
});

function bodyOf(keyPrefix: string, { resource, cause, sentences, state }: LockExplanation, verdicts: string[]) {
  return { keyPrefix, resource, cause, verdicts, sentences, state };
}

/** So long that the next renewal shows, if that is soon. */
function untilNextLook({ holders }: LockState): number {
  const dueMs = holders.map((holder) => holder.leaseMs / 3 - renewedMsAgo(holder) + SLACK_MS);
  const soon = dueMs.filter((ms) => ms > LOOK_AGAIN_MS && ms <= MOST_WAITED_MS);
  return Math.max(LOOK_AGAIN_MS, ...soon);
}

/** What two looks say of each holder that both of them show. */
export function verdictsOf(first: LockState, second: LockState): string[] {
  return second.holders.slice(0, 3).map((holder) => {
    const before = first.holders.find(({ fencingToken }) => fencingToken === holder.fencingToken);
    return `${plainOrQuoted(holder.instanceId)}: ${verdictOf(before, holder)}`;
  });
}

function verdictOf(before: Holder | undefined, holder: Holder): string {
  const left = longDuration(holder.ttlMs);
  if (holder.isKept) return `released, stays taken for another ${left}`;
  if (!before) return 'granted between two looks: the holder lives';
  const betweenMs = holder.heldMs - before.heldMs;
  if (holder.ttlMs > before.ttlMs - betweenMs + ROUNDED_MS) return 'renewed between two looks: the holder lives';
  const lateMs = renewedMsAgo(holder) - holder.leaseMs / 3;
  if (renewedMsAgo(holder) > holder.leaseMs / 2) return `not renewed: the holder is dead, free in ${left}`;
  if (lateMs > SLACK_MS) return `a renewal is ${longDuration(lateMs)} late: the holder may be dead, free in ${left}`;
  return `no renewal was due between two looks: the next one is in ${longDuration(Math.max(0, -lateMs))}`;
}
