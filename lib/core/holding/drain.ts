import type { LockObservers } from '../events/observers.js';
import type { Clock } from '../util/clock.js';
import { settle } from '../util/promises.js';
import type { ActiveHolds } from './active-holds.js';

/**
 * A wait that is over so soon is no event: each deployment finds work that is about to end, and leaders that resign.
 */
const UNNOTICED_MS = 250;

interface DrainDeps {
  readonly active: ActiveHolds;
  readonly clock: Clock;
  readonly observers: LockObservers;
}

/** Waits up to `drainMs` for the leases that the work of this process still holds, and tells the observers. */
export async function drain({ active, clock, observers }: DrainDeps, drainMs: number): Promise<void> {
  const startedAt = clock.now();
  const held = (): string[] => active.list().map(({ owner }) => owner.resource);
  // Leaders step down at this moment. One that is idle loses nothing, even if there is no time for work to end.
  if (active.size > 0) await settle();
  await active.whenEmpty(clock, Math.min(UNNOTICED_MS, drainMs));
  if (active.size === 0 || drainMs === 0) return;
  if (drainMs > UNNOTICED_MS) {
    observers.emit({ type: 'draining', service: observers.service, resources: held(), drainMs });
    await active.whenEmpty(clock, drainMs - UNNOTICED_MS);
  }
  observers.emit({
    type: 'drained',
    service: observers.service,
    resources: held(),
    waitedMs: clock.now() - startedAt,
  });
}
