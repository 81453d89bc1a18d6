import { HANDED_ON } from '../api/holder.js';
import type { LockStore } from '../store/lock-store.js';
import type { LocalHolder, StoreLease } from './store-lease.js';

/**
 * The delay after a hand-over in memory before the next holder's label is stored, with an early renewal. Most rows of
 * hand-overs have ended by then, and cost one command in all.
 */
export const LABEL_AFTER_MS = 250;

/** A label that no call has: what the store shows is not known. */
const UNKNOWN = '';

type LabelStore = Pick<LockStore, 'label'>;

/**
 * A call got a store lease without a command of its own, or beside other readers, so the store may show another call's
 * label. Marks that label as stale at once, by a command that no call waits for; this call's label follows later, see
 * {@link syncLabel}. Called only if one of the two has a label.
 */
export function passLabel(storeLease: StoreLease, label: string | undefined, store: LabelStore, now: number): void {
  if (storeLease.label === label) return;
  if (storeLease.label !== undefined && storeLease.label !== HANDED_ON) send(storeLease, HANDED_ON, store);
  storeLease.nextRenewalAt = Math.min(storeLease.nextRenewalAt, now + LABEL_AFTER_MS);
}

/** The store has granted it with the label of a call that has given up since. */
export function markLabelStale(
  storeLease: StoreLease,
  label: string | undefined,
  store: LabelStore,
  now: number,
): void {
  storeLease.label = UNKNOWN;
  passLabel(storeLease, label, store, now);
}

/** Stores the label of the holder if another one is stored. Sent beside a renewal. */
export function syncLabel(storeLease: StoreLease, store: LabelStore): void {
  const label = labelOf(storeLease.holders) ?? (storeLease.label === undefined ? undefined : HANDED_ON);
  if (label !== undefined && label !== storeLease.label) send(storeLease, label, store);
}

/** The label of a single holder, or the one that all of several readers have. */
export function labelOf(holders: readonly Pick<LocalHolder, 'label'>[]): string | undefined {
  const label = holders[0]?.label;
  return holders.every((holder) => holder.label === label) ? label : undefined;
}

function send(storeLease: StoreLease, label: string, store: LabelStore): void {
  storeLease.label = label;
  store.label(storeLease.owner, label, true).catch(() => {
    // The next renewal tries again.
    if (storeLease.label === label) storeLease.label = UNKNOWN;
  });
}
