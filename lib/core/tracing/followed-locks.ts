import { labelWithTrace } from '../api/label.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Holder } from '../api/holder.js';
import type { LockTracer, TracedEnd, TracedGrant, TracedLock, TracedRun } from '../events/lock-tracer.js';
import { type CallTraces, type HoldTraces, type RunTraces, Tracers } from './tracers.js';

/** A call that tracers follow. */
interface FollowedCall {
  readonly startedAt: number;
  readonly traces: CallTraces;
}

/** A call that tracers may follow. */
interface CallToFollow {
  readonly lock: TracedLock;
  /** A copy, by which the call is known. */
  readonly options: ResolvedLockOptions & { label?: string | undefined };
  readonly startedAt: number;
  readonly now: () => number;
}

/** What the tracers of a lock service follow. Without a tracer, nothing is made for it. */
export class FollowedLocks {
  readonly #tracers = new Tracers();
  /** By the options that a followed call was given a copy of. */
  readonly #calls = new WeakMap<ResolvedLockOptions, FollowedCall>();
  readonly #holds = new WeakMap<object, HoldTraces>();

  /** Whether there is no tracer. Ask before you call anything else. */
  get isEmpty(): boolean {
    return this.#tracers.isEmpty;
  }

  /** @param failed told of its errors @returns a function that removes it */
  add(tracer: LockTracer, failed: (error: unknown) => void): () => void {
    return this.#tracers.add(tracer, failed);
  }

  /** Follows one call for one resource. */
  acquire<T>(call: CallToFollow, work: () => Promise<T>): Promise<T> {
    return this.#follow(call, this.#tracers.acquire(call.lock), work);
  }

  /** Follows the adoption of a lease. @param traceparent as the transferred text has it */
  adopt<T>(call: CallToFollow, traceparent: unknown, work: () => Promise<T>): Promise<T> {
    return this.#follow(call, this.#tracers.adopt(call.lock, traceparent), work);
  }

  /** The call with these options waits. @param holders looked up only if it is followed */
  waits(options: ResolvedLockOptions, now: number, holders: () => readonly Holder[]): void {
    const call = this.#calls.get(options);
    call?.traces.waits(holders(), Math.max(0, now - call.startedAt));
  }

  /** The call with these options has got a hold. */
  granted(options: ResolvedLockOptions, hold: object, grant: TracedGrant): void {
    this.#keep(hold, this.#calls.get(options)?.traces.granted(grant));
  }

  /** Whether renewals are followed. Ask before {@link renewal}. */
  get wantsRenewals(): boolean {
    return this.#tracers.wantsRenewals;
  }

  /** Follows a renewal of a hold. @param work resolves to whether this process still has the lock */
  renewal(hold: object, by: 'watchdog' | 'extend', work: () => Promise<boolean>): Promise<boolean> {
    const traces = this.#holds.get(hold)?.renews(by);
    if (!traces) return work();
    const failed = (error: unknown): void => traces.ended('failed', error);
    try {
      const renewed = traces.run(work);
      renewed.then((isOwner) => traces.ended(isOwner ? 'renewed' : 'lost', undefined), failed);
      return renewed;
    } catch (error) {
      failed(error);
      throw error;
    }
  }

  /** A hold has ended. What comes later changes nothing. */
  ended(hold: object, end: TracedEnd): void {
    const traces = this.#holds.get(hold);
    this.#holds.delete(hold);
    traces?.ended(end);
  }

  /**
   * Runs the work below the hold of a lease; of several, the last one that was granted. Work that comes later, under a
   * lease that a transaction keeps, stays in the context of its caller.
   */
  runUnder<T>(holds: readonly object[], work: () => T): T {
    for (const hold of holds.toReversed()) {
      const traces = this.#holds.get(hold);
      if (traces && !traces.hasRun) return traces.run(work);
    }
    return work();
  }

  /** Runs a job, and follows the run. */
  async runTick<T>(lock: TracedLock, run: TracedRun, work: (traces?: RunTraces) => Promise<T>): Promise<T> {
    const traces = this.#tracers.tick(lock, run);
    if (!traces) return work();
    try {
      const result = await traces.run(() => work(traces));
      traces.ended(undefined);
      return result;
    } catch (error) {
      traces.ended(error);
      throw error;
    }
  }

  /** The lock of a job is held. */
  tickHeld(traces: RunTraces, hold: object, grant: TracedGrant): void {
    this.#keep(hold, traces.held(grant));
  }

  #follow<T>(call: CallToFollow, traces: CallTraces | undefined, work: () => Promise<T>): Promise<T> {
    if (!traces) return work();
    const { options, startedAt, now } = call;
    const { traceparent } = traces;
    if (traceparent !== undefined) options.label = labelWithTrace(options.label, call.lock.group, traceparent);
    this.#calls.set(options, { startedAt, traces });
    const failed = (error: unknown): void => traces.failed(error, Math.max(0, now() - startedAt));
    try {
      const result = traces.run(work);
      result.catch(failed);
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  }

  #keep(hold: object, traces: HoldTraces | undefined): void {
    if (traces) this.#holds.set(hold, traces);
  }
}
