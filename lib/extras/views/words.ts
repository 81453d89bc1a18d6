import type { FleetInstance } from '../../features/fleet/core/roll/lock-fleet.js';
import type { FleetHolder } from '../../features/fleet/core/roll/locks-in.js';

/**
 * The state of a lease, or of its process. `released`: kept until its `minHoldMs` has passed. `noHolder`: calls wait, and
 * no holder was found.
 */
export type LockLife = FleetHolder['life'] | 'released' | 'noHolder';

/** Words for people, each behind the mark that the page gives it. */
export const LIVES: Readonly<Record<LockLife, string>> = {
  alive: 'good alive',
  notRenewed: 'calm alive, not renewing',
  released: 'calm released',
  leaked: 'bad leaked',
  silent: 'bad does not answer',
  dead: 'bad dead',
  unknown: 'calm unknown',
  noHolder: 'calm no holder found',
};

/** `silent`: subscribed, and has not answered. `unsubscribed`: a holder without a subscription. */
export const INSTANCE_STATES: Readonly<Record<FleetInstance['health'] | 'silent' | 'unsubscribed', string>> = {
  up: 'good up',
  renewalsFail: 'bad renewals fail',
  shuttingDown: 'calm shutting down',
  silent: 'bad silent',
  unsubscribed: 'calm no subscription',
};

/** Without the mark. */
export function wordOf(marked: string): string {
  return marked.slice(marked.indexOf(' ') + 1);
}
