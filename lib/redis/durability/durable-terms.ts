import type { AcquireReply, RotateReply } from '../../core/store/lock-store.js';
import type { TickReply } from '../../core/store/tick-store.js';
import type { ScriptTerms } from '../redis-lock-store.js';

/**
 * What replicas must have: whatever lets somebody believe that he holds a lock, until later, or in another mode. A place in a queue
 * is asked for again and again. A release that gets lost leaves a lock that nobody holds, until it expires; and whoever is granted
 * that lock before has waited for the release too, because replicas get everything in order.
 */

export const GRANT: ScriptTerms<AcquireReply> = {
  mayGrant: true,
  durable: { isNeeded: ({ status }) => status === 'granted' },
};

/** The first one is rid of the lock in any case. */
export const ROTATION: ScriptTerms<RotateReply> = {
  mayGrant: true,
  durable: {
    isNeeded: ({ next }) => 'status' in next && next.status === 'granted',
    otherwise: ({ released }, error) => ({ released, next: error }),
  },
};

/** Of the claim itself too, which goes with the job's lock. Without the lock it is claimed again before it runs. */
export const CLAIM: ScriptTerms<[TickReply['status'], number, number]> = {
  mayGrant: true,
  durable: { isNeeded: ([status]) => status === 'granted' },
};

/** A lease begins anew, or is held in another way. */
export const CHANGE: ScriptTerms<boolean> = { durable: { isNeeded: (isDone) => isDone } };

export const TRANSFERRED: ScriptTerms<number | null> = { durable: { isNeeded: (token) => token !== null } };

/** Such as that a tick has run: nobody may run it again. */
export const ALWAYS: ScriptTerms<unknown> = { durable: { isNeeded: () => true } };
