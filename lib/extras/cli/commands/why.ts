import { renewedMsAgo } from '../../../kernel/api/holder.js';
import type { LockState } from '../../../kernel/store/lock-state.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { lifeOf } from '../../../features/fleet/core/roll/life.js';
import type { FleetReport } from '../../../features/fleet/core/roll/lock-fleet.js';
import { withoutAnswers } from '../../../features/fleet/core/findings/survey.js';
import { conclusionsOf, SLACK_MS } from '../../views/why.js';
import { defineCommand } from '../frame/command.js';
import { flagOption } from '../frame/options.js';
import { pauseFor } from '../frame/pause.js';
import { pollInstances } from '../frame/roll.js';

/** Between two looks. A renewal that is due soon is waited for. */
const LOOK_AGAIN_MS = 1_000;
/** A third of the default lease, and more. */
const MAX_WAITED_MS = 11_000;
const WATCH_EVERY_MS = 2_000;

export const why = defineCommand({
  name: 'why',
  summary: 'Explains why a call cannot get a resource: who holds it, whether the holder is alive, and what to do.',
  args: [{ name: 'resource', isRequired: true }],
  options: { watch: flagOption('Checks again every two seconds until you press Ctrl-C.') },
  details: ['Checks twice: if the lease is renewed in between, the holder is alive. Also asks the holder itself.'],
  examples: ['why order:7', 'why cron:nightly-report --watch'],
  async run({ args, options, output, terminal, session, signal }) {
    const [resource] = args as [string];
    const opened = await session();
    const { client, keyPrefix } = opened;
    // If the instances cannot be asked, only the leases show it.
    const rollFor = ({ holders }: LockState): Promise<FleetReport | undefined> =>
      holders.length === 0 ? Promise.resolve(undefined) : pollInstances(opened).catch(withoutAnswers);
    let before = await client.operators.inspect(resource);
    let roll = await rollFor(before);
    do {
      const waitMs = options.watch ? WATCH_EVERY_MS : untilNextLook(before, roll);
      if (before.holders.length > 0) terminal.progress(`Checking again in ${longDuration(waitMs)} …`);
      if (before.holders.length > 0 || options.watch) await pauseFor(waitMs, signal);
      const lookAround = async (seen: LockState) => (roll = await rollFor(seen));
      const { cause, state, sentences } = await client.operators.explain(resource, {}, lookAround);
      const conclusions = conclusionsOf(before, state, roll);
      output.print({
        json: { keyPrefix, resource, cause, conclusions, sentences, state },
        shown: [...conclusions, ...sentences],
      });
      before = state;
    } while (options.watch && !signal.aborted);
    return 'done';
  },
});

/** Long enough to see the next renewal, if that is soon or nothing else shows that the holder lives. */
function untilNextLook({ holders }: LockState, roll: FleetReport | undefined): number {
  const dueMs = holders.map((holder) => {
    const ms = holder.leaseMs / 3 - renewedMsAgo(holder) + SLACK_MS;
    const isHeard = roll !== undefined && lifeOf(holder, roll) === 'alive';
    return ms <= (isHeard ? LOOK_AGAIN_MS : MAX_WAITED_MS) ? ms : 0;
  });
  return Math.max(LOOK_AGAIN_MS, ...dueMs);
}
