import { aborted } from '../../../kernel/acquiring/acquire-errors.js';
import { LockBusyError, LockTimeoutError } from '../../../kernel/api/busy-errors.js';
import { LockUnavailableError } from '../../../kernel/api/errors.js';
import { validUntil } from '../../../kernel/holding/store-lease.js';
import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import { askUntil } from '../../../kernel/store/ask-until.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { backoff } from '../../../kernel/util/clock.js';
import { mergeSignals } from '../../../kernel/util/signals.js';
import type { LockWatches } from '../../watch/core/lock-watches.js';
import type { ResolvedOnce } from './once-options.js';
import type { ClaimedResult, ResultStore } from './result-store.js';

/** The pauses between two questions to a store that does not answer. */
const PAUSE_MS = { first: 20, longest: 200 };

/** A call of `once` that needs an answer of the store. */
export interface AskingCall {
  readonly resource: string;
  readonly options: ResolvedOnce;
  readonly startedAt: number;
  readonly giveUpAt: number;
  /** Aborts when a shutdown ends the call. */
  readonly closing: AbortSignal;
  attempts: number;
  outcome: 'run' | 'hit' | 'wait';
  /** The kept text that this call cannot read. */
  unreadable?: string;
}

/** What calls of `once` ask the store: for a result, for the lock to make one, and when that lock is free. */
export class OnceQuestions {
  constructor(
    private readonly deps: KernelParts,
    private readonly watches: LockWatches,
    private readonly results: ResultStore | undefined,
  ) {}

  /** @returns the stored result, if there is one */
  read(call: AskingCall): Promise<string | undefined> {
    const send = () => this.results!.read(call.resource);
    return this.#ask(call, 'read the result of', { send, isRead: true });
  }

  async claim(call: AskingCall, owner: LockOwner): Promise<{ readonly reply: ClaimedResult; readonly sentAt: number }> {
    const { clock, orphanReleases } = this.deps;
    const { lock } = call.options;
    let sentAt = 0;
    const reply = await this.#ask(call, 'acquire', {
      send: () => {
        sentAt = clock.now();
        call.attempts++;
        return this.results!.claim(owner, lock.leaseMs, call.unreadable);
      },
      // A grant that arrives after its lease is asked for again.
      isFinal: ({ status }) => status !== 'granted' || clock.now() < validUntil(sentAt, lock.leaseMs),
      late: (command) => orphanReleases.refuseLateGrant(command, owner, lock),
      // It may have been granted.
      failed: () => orphanReleases.start(owner, lock),
    });
    return { reply, sentAt };
  }

  /** @throws LockTimeoutError if it is not free in time */
  async waitUntilFree(call: AskingCall, reply: Exclude<ClaimedResult, { status: 'granted' | 'kept' }>): Promise<void> {
    const { clock } = this.deps;
    const { resource, options, startedAt, giveUpAt, attempts } = call;
    const { signal, waitMs } = options.lock;
    const seen = 'seen' in reply ? reply.seen : undefined;
    if (waitMs === 0) throw new LockBusyError(resource, { attempts, retryAfterMs: reply.ttlMs, seen });
    const timedOut = (asked: number, retryAfterMs: number, holders = seen): LockTimeoutError => {
      const facts = { attempts: attempts + asked, retryAfterMs, seen: holders };
      return new LockTimeoutError(resource, { ...facts, waitedMs: clock.now() - startedAt });
    };
    const leftMs = Math.ceil(giveUpAt - clock.now());
    if (leftMs <= 0) throw timedOut(0, reply.ttlMs);
    call.outcome = 'wait';
    try {
      await this.watches.waitUntilFree(resource, signal ? { waitMs: leftMs, signal } : { waitMs: leftMs });
    } catch (error) {
      if (!(error instanceof LockTimeoutError)) throw error;
      throw timedOut(error.attempts, error.retryAfterMs, error);
    }
  }

  /** Asks until there is an answer, but no longer than the call waits for its result, or for an unreachable store. */
  async #ask<T>(
    { resource, options, startedAt, giveUpAt, closing }: AskingCall,
    operation: string,
    command: {
      send(): Promise<T>;
      /** `true` if it is answered during a shutdown, too. */
      isRead?: boolean;
      isFinal?(reply: T): boolean;
      late?(command: Promise<T>): void;
      failed?(): void;
    },
  ): Promise<T> {
    const { alarms, clock, observers } = this.deps;
    const { attemptTimeoutMs, unavailableMs } = options.lock;
    const own = options.lock.signal;
    const { signal, dispose } = command.isRead ? { signal: own, dispose: undefined } : mergeSignals(closing, own);
    const answer = await askUntil(alarms, clock, {
      send: command.send,
      timeoutMs: attemptTimeoutMs,
      giveUpAt: Math.min(giveUpAt, Math.max(clock.now(), startedAt) + unavailableMs),
      unanswered: ({ outcome }, sent) => {
        if (outcome !== 'failed') command.late?.(sent);
        return false;
      },
      pauseMs: (failures) => backoff(PAUSE_MS, failures),
      ...(command.isFinal && { isFinal: command.isFinal }),
      ...(signal && { signal }),
    });
    dispose?.();
    if (answer.outcome === 'answered') {
      observers.answered();
      return answer.value;
    }
    command.failed?.();
    if (answer.outcome === 'aborted' || closing.aborted) throw aborted(resource, closing, own);
    const waitedMs = clock.now() < giveUpAt ? unavailableMs : undefined;
    throw new LockUnavailableError(resource, operation, answer.outcome, answer.error, waitedMs);
  }
}
