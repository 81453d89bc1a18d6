import type { LockOwner } from '../../../core/store/lock-store.js';
import type { TickClaim } from '../../../core/store/tick-store.js';
import { openedPart } from '../opened-part.js';
import { LONG_MS, newOwner } from '../requests.js';
import type { Base } from '../suite.js';

export const TICK = { resource: 'job:report', tick: '2026-01-01T00:00:00Z' };
export const NEXT_TICK = { ...TICK, tick: '2026-01-01T00:01:00Z' };

export function wish(owner: LockOwner, changes: Partial<TickClaim> = {}): TickClaim {
  return { owner, leaseMs: LONG_MS, keepMs: LONG_MS, overlap: 'skip', takeOver: 'nothing', ...changes };
}

/** Two instances that claim the ticks of one job: a runner on the first, and another owner on the second. */
export async function openTicks({ subject }: Base) {
  const { locks: store, ticks: ofOne } = await subject.open('one');
  const { locks: otherStore, ticks: ofTwo } = await subject.open('two');
  const tickStore = openedPart(ofOne, 'ticks');
  const runner = newOwner(store, TICK.resource);
  return {
    store,
    tickStore,
    otherTickStore: openedPart(ofTwo, 'ticks'),
    runner,
    other: newOwner(otherStore, TICK.resource),
    /** The run of the runner is over. */
    finish: async (tick = TICK): Promise<void> => {
      await tickStore.finish(tick, runner, LONG_MS);
      await store.release(runner);
    },
  };
}
