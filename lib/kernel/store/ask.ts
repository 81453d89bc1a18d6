import { type Alarm, type Alarms, alarmThat } from '../util/alarms.js';
import { LockUnavailableError } from '../api/errors.js';
import { backoff, type Clock, type Random } from '../util/clock.js';
import { pause } from '../util/promises.js';
import type { RefusedCommands } from './refused-commands.js';
import { asStoreError, LockStoreError } from './store-error.js';
import type { LockDefaults, ResolvedLockOptions } from '../api/lock-options.js';
import type { LockOwner, LockStore } from './lock-store.js';

/** The first and the longest pause before an unexecuted command is sent again: about the time a reconnect takes. */
const PAUSE_MS = { first: 20, longest: 200 };

/** The outcome of a command. `timeout` means unknown: it may have been executed, or may still be executed. */
export type Answer<T> = Settled<T> | { readonly outcome: 'aborted' };

export type Settled<T> =
  | { readonly outcome: 'answered'; readonly value: T }
  | { readonly outcome: 'timeout'; readonly error: LockStoreError }
  | { readonly outcome: 'failed'; readonly error: LockStoreError };

/** Waits for a command's reply, but no longer than `timeoutMs` or until the signal aborts. Never rejects. */
export function withTimeout<T>(
  alarms: Alarms,
  command: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Answer<T>> {
  return new Promise((resolve) => {
    const settle = (answer: Answer<T>): void => {
      alarms.cancel(alarm);
      signal?.removeEventListener('abort', abort);
      resolve(answer);
    };
    const abort = (): void => settle({ outcome: 'aborted' });
    const alarm = alarmThat(() => settle(timedOut(timeoutMs)));
    alarms.setIn(alarm, timeoutMs);
    signal?.addEventListener('abort', abort);
    command.then(
      (value) => settle({ outcome: 'answered', value }),
      (error: unknown) => settle({ outcome: 'failed', error: asStoreError(error) }),
    );
    if (signal?.aborted) abort();
  });
}

/**
 * The same, but sends the command again within `timeoutMs` while it was certainly not executed: in a failover, the old
 * primary is already a replica and the new one was not found yet. If it is not certain, the caller decides: it knows
 * what a second execution would mean. `again` returns nothing if it is no longer wanted.
 */
export function retryUnexecuted<T>(
  alarms: Alarms,
  command: Promise<T>,
  timeoutMs: number,
  again: () => Promise<T> | undefined,
  sentAt?: number,
): Promise<Settled<T>> {
  return new Promise((resolve) => {
    let trouble: LockStoreError | undefined;
    let failures = 0;
    let isOver = false;
    let next: Alarm | undefined;
    const settle = (answer: Settled<T>): void => {
      isOver = true;
      alarms.cancel(alarm);
      if (next) alarms.cancel(next);
      resolve(answer);
    };
    const alarm = alarmThat(() => settle(trouble ? { outcome: 'failed', error: trouble } : timedOut(timeoutMs)));
    const answered = (value: T): void => settle({ outcome: 'answered', value });
    const failed = (error: unknown): void => {
      if (isOver) return;
      const cause = asStoreError(error);
      if (cause.failure !== 'notExecuted') return settle({ outcome: 'failed', error: cause });
      trouble = cause;
      if (alarms.isStopped) return settle({ outcome: 'failed', error: cause });
      next ??= alarmThat(() => {
        const sent = alarms.isStopped ? undefined : again();
        if (!sent) return settle({ outcome: 'failed', error: trouble! });
        trouble = undefined;
        sent.then(answered, failed);
      });
      alarms.setIn(next, backoff(PAUSE_MS, ++failures));
    };
    alarms.setIn(alarm, timeoutMs, sentAt);
    command.then(answered, failed);
  });
}

/** Sends a command again while it is certain that it was not executed. @throws LockUnavailableError without a reply */
export async function ask<T>(
  { alarms, defaults }: { readonly alarms: Alarms; readonly defaults: Pick<LockDefaults, 'attemptTimeoutMs'> },
  send: () => Promise<T>,
  operation: string,
  resource: string,
  isWanted = () => true,
  timeoutMs = defaults.attemptTimeoutMs,
): Promise<T> {
  const answer = await retryUnexecuted(alarms, send(), timeoutMs, () => (isWanted() ? send() : undefined));
  if (answer.outcome === 'answered') return answer.value;
  throw new LockUnavailableError(resource, operation, answer.outcome, answer.error);
}

/** A command that may safely be executed twice, and when to stop sending it. */
interface RepeatedCommand<T> {
  /** @returns nothing if the command is no longer needed: the last answer is then final */
  send(): Promise<T> | undefined;
  /** In milliseconds. */
  readonly timeoutMs: number;
  /** After an attempt without an answer, no other starts at this time or later, on the monotonic clock. */
  readonly giveUpAt: number;
  /** @returns the pause after this many failures in a row, in milliseconds */
  pauseMs(failures: number): number;
  /** Paces the command after a refusal. @default a refusal is final */
  readonly refused?: RefusedCommands;
  /** Called after each attempt without an answer. @returns whether the caller no longer needs the answer */
  unanswered?(answer: Exclude<Answer<T>, { outcome: 'answered' }>, command: Promise<T>): boolean;
  /**
   * Returns true if an answer ends the wait. Otherwise, the command is sent again after a pause, also after `giveUpAt`.
   */
  isFinal?(value: T): boolean;
  readonly signal?: AbortSignal;
}

/**
 * Sends a command again until it is answered, or until `giveUpAt`. A refusal ends that, unless the command has to
 * arrive: then it continues after a longer pause (see {@link RefusedCommands}). @returns the last answer
 */
export async function askUntil<T>(alarms: Alarms, clock: Clock, command: RepeatedCommand<T>): Promise<Answer<T>> {
  const { timeoutMs, giveUpAt, signal, refused } = command;
  let answer: Answer<T> = { outcome: 'aborted' };
  let refusals = 0;
  let failures = 0;
  for (let sent = command.send(); sent !== undefined; sent = command.send()) {
    answer = await withTimeout(alarms, sent, timeoutMs, signal);
    const isRefused = answer.outcome === 'failed' && answer.error.failure === 'refused';
    if (refusals > 0) refused!.answered(isRefused);
    if (answer.outcome === 'answered') {
      if (command.isFinal?.(answer.value) ?? true) return answer;
    } else {
      if (command.unanswered?.(answer, sent) || answer.outcome === 'aborted') return answer;
      if (isRefused && (refused === undefined || refused.isClosed)) return answer;
    }
    refusals = isRefused ? refusals + 1 : 0;
    const pauseMs = isRefused ? refused!.pauseMs(refusals) : command.pauseMs(++failures);
    if (answer.outcome !== 'answered' && clock.now() + pauseMs >= giveUpAt) return answer;
    if (isRefused) await refused!.turn(pauseMs);
    else if ((await pause(clock, pauseMs, signal)) === 'aborted') return { outcome: 'aborted' };
  }
  // The turn of the next one: this one is not sent.
  if (refusals > 0) refused!.answered(true);
  return answer;
}

function timedOut(timeoutMs: number): { outcome: 'timeout'; error: LockStoreError } {
  return {
    outcome: 'timeout',
    error: new LockStoreError('unknown', `no answer within ${Math.round(timeoutMs)} ms`),
  };
}

/** 96 bits cannot be guessed, not even from the seals of messages, and each owner id is sent with every command. */
const SECRET_BYTES = 12;

/**
 * A new owner id. It begins with the client: operators see which process holds the lock, and grants reach it. The rest
 * is secret: a process that knows the whole id can renew and release the lock.
 */
export function createOwnerId(clientId: string, random: Random): string {
  return `${clientId}/${random.id(SECRET_BYTES)}`;
}

export function createOwner(
  resource: string,
  { mode, permits, label }: Pick<ResolvedLockOptions, 'mode' | 'permits' | 'label'>,
  { store, random }: { readonly store: LockStore; readonly random: Random },
): LockOwner {
  const id = createOwnerId(store.clientId, random);
  return label === undefined ? { resource, id, mode, permits } : { resource, id, mode, permits, label };
}

export function instanceOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.indexOf('/'));
}

export function clientOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.lastIndexOf('/'));
}
