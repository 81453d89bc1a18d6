import type { AcquireReply, RotateReply } from '../../kernel/store/lock-store.js';
import type { LockStoreError } from '../../kernel/store/store-error.js';
import type { TickReply } from '../../features/jobs/core/job-claims.js';
import type { ClaimedResult } from '../../features/once/core/result-store.js';
import { defineScript, type DurableOutcome } from './script.js';

// Each script is a file in lua/. The comment at its top lists its KEYS, ARGV and replies.
//
// `durable` marks what replicas must have: everything a process relies on to believe that it holds a lock, for longer,
// or in another mode. A place in a queue needs no mark, because the waiter asks for it again and again. A lost release
// leaves a lock without a holder until it expires. A process that is granted the lock before that has waited for the
// release too, because replicas receive everything in order.
//
// `frees` marks what must be executed at any time, also on a server that may have forgotten leases; see RestartQuarantine.
// Every other script that may grant is held up there.

/** A lease is renewed, or continues in another mode. */
const IF_DONE: DurableOutcome<boolean> = { isNeeded: (isDone) => isDone };
const FREES = { frees: true } as const;

export const ACQUIRE = defineScript<AcquireReply>('acquire', {
  durable: { isNeeded: ({ status }) => status === 'granted' },
});

/** The release counts in any case. */
export const ROTATE = defineScript<RotateReply>('rotate', {
  durable: {
    isNeeded: ({ next }) => 'status' in next && next.status === 'granted',
    otherwise: ({ released }, error) => ({ released, next: error }),
  },
});

export const DOWNGRADE = defineScript<boolean>('downgrade', { frees: true, durable: IF_DONE });
export const RAISE_TOKEN = defineScript('raiseToken', { durable: IF_DONE });
export const RENEW = defineScript<readonly (boolean | LockStoreError)[]>('renew', {
  durable: {
    ofSeveral: true,
    isNeeded: (replies) => replies.includes(true),
    otherwise: (replies, error) => replies.map((reply) => (reply === true ? error : reply)),
  },
});
export const RENEW_EXACTLY = defineScript('renewExactly', { durable: IF_DONE });
export const RESIZE = defineScript<boolean>('resize', { frees: true, durable: IF_DONE });
export const SET_DEPTH = defineScript('setDepth', { durable: IF_DONE });

export const FORCE_RELEASE = defineScript<boolean>('forceRelease', FREES);
export const INSPECT = defineScript('inspect');
/** After a fail-over to a replica without it, the owner has more permits than it counts on, until it releases them. */
export const LOWER_PERMITS = defineScript<boolean>('lowerPermits', FREES);
/** Its data is only shown to people: nothing is granted or refused because of it. */
export const LABEL = defineScript('label');
/** It grants nothing. A waiter whose place a fail-over has lost asks again. */
export const KEEP = defineScript('keep');
export const RELEASE = defineScript<boolean>('release', FREES);
export const RETAIN = defineScript<boolean>('retain', FREES);
export const VERIFY = defineScript('verify');

/** A server that has forgotten its locks does not know which of them are free. */
export const WATCH = defineScript('watch');

/** Status, number and flag, and a text if there is one. See claim-tick.lua. */
export type ClaimReply = [
  status: TickReply['status'],
  value: number,
  flag: number,
  text?: string,
  isNew?: number,
  other?: string,
];

/** Claims a tick together with the lock of its job. A claim without the lock is made again before the tick runs. */
export const CLAIM_TICK = defineScript<ClaimReply>('claimTick', {
  durable: { isNeeded: ([status]) => status === 'granted' },
});

/** A tick that has run must not run again. */
export const FINISH_TICK = defineScript<unknown>('finishTick', { durable: { isNeeded: () => true } });

/** Its data is only shown to people, and the lock is released like by {@link RELEASE}. */
export const END_RUN = defineScript<boolean>('endRun', FREES);
export const INDEX_JOBS = defineScript('indexJobs');
export const LOOK_JOBS = defineScript('lookJobs');
export const REGISTER_JOB = defineScript('registerJob');
/** The run itself is claimed as any other. */
export const CHANGE_REQUEST = defineScript('changeRequest');
/** Ticks reported as missed must not run, and an answered pause must hold. */
export const NOTE_MISSED = defineScript<unknown>('noteMissed', { durable: { isNeeded: () => true } });
export const PAUSE_JOB = defineScript<unknown>('pauseJob', { durable: { isNeeded: () => true } });

export const EXCHANGE_CLAIM = defineScript('exchangeClaim');

export const MARK_DONE = defineScript('markDone');

export const READ_RESULT = defineScript<unknown>('readResult', { sentAs: 'get' });
export const CLAIM_RESULT = defineScript<ClaimedResult>('claimResult', {
  durable: { isNeeded: ({ status }) => status === 'granted' },
});
/** Stores the result of a call of `once`. Durable, because without the result the work would run again. */
export const KEEP_RESULT = defineScript<boolean>('keepResult', { frees: true, durable: IF_DONE });
/** A result that was forgotten must not come back. */
export const FORGET_RESULT = defineScript<unknown>('forgetResult', { durable: { isNeeded: () => true } });

/** They are for people to read, and nothing is granted or refused because of them. */
export const ANSWER_ROLL = defineScript('answerRoll');
export const CALL_ROLL = defineScript('callRoll');
export const READ_ROLL = defineScript('readRoll');

export const GUARD = defineScript('guard');
export const PROBE = defineScript('probe');
export const PROBE_INBOX = defineScript('probeInbox');
export const QUARANTINE = defineScript('quarantine');
/** The script of a health check: it is held up whenever a grant would be. */
export const TRY_WRITE = defineScript<unknown>('tryWrite', { durable: { isNeeded: () => true } });
