import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { LeaseLostError } from '../api/lease-errors.js';
import type { Holder } from '../api/holder.js';
import type { CallTrace, RenewalTrace, TracedEnd, TracedGrant, TracedLock } from '../events/lock-tracer.js';
import { outcomeOfError } from '../events/events.js';
import type {
  AcquireEntry,
  LockAcquireTrace,
  LockHoldTrace,
  LockReleaseTrace,
  LockRenewTrace,
  LockTickTrace,
} from './contexts.js';

/** What is published while an operation lasts. The names of the channels are `tracing:<name>:start` and so on. */
export const ACQUIRE_CHANNEL = tracingChannel('nestjs-redis-lock:acquire');
export const HOLD_CHANNEL = tracingChannel('nestjs-redis-lock:hold');
export const RENEW_CHANNEL = tracingChannel('nestjs-redis-lock:renew');
export const RELEASE_CHANNEL = tracingChannel('nestjs-redis-lock:release');
export const TICK_CHANNEL = tracingChannel('nestjs-redis-lock:tick');

/** A lease, as its messages describe it. */
type Lease = TracedLock & { readonly fencingToken: number };

/** What is known of an operation later than its first message. */
type Known<Trace> = { -readonly [Name in keyof Trace]?: Trace[Name] };

/**
 * One operation, as its channel publishes it. All its messages have one frozen object. Subscribers cannot change it;
 * what is not known at the start is read from what is found out later.
 */
class Publication<Trace extends object> {
  protected readonly known: Known<Trace> = {};
  readonly #context: object;

  /** @param later what is not known yet */
  constructor(
    private readonly channel: TracingChannel,
    now: Known<Trace>,
    later: readonly (keyof Trace & string)[],
  ) {
    const context = { ...now };
    for (const name of later) {
      Object.defineProperty(context, name, { enumerable: true, get: () => this.known[name] });
    }
    Object.defineProperty(context, inspect.custom, { value: () => ({ ...context }) });
    this.#context = Object.freeze(context);
  }

  /**
   * Runs the operation in the stores that subscribers bind. Not `tracePromise` of Node, which would write the result into
   * the context: a lease carries a secret.
   */
  run<T>(work: () => T): T {
    const { start, end } = this.channel;
    return start.runStores(this.#context, () => {
      try {
        return work();
      } finally {
        end.publish(this.#context);
      }
    });
  }

  /** It begins, and does not end in the same step. */
  protected begin(): void {
    const { start, end } = this.channel;
    start.publish(this.#context);
    end.publish(this.#context);
  }

  protected end(hasFailed: boolean): void {
    const { asyncStart, asyncEnd, error } = this.channel;
    if (hasFailed) error.publish(this.#context);
    asyncStart.publish(this.#context);
    asyncEnd.publish(this.#context);
  }
}

export class PublishedCall extends Publication<LockAcquireTrace> implements CallTrace {
  readonly traceparent = undefined;

  constructor(lock: TracedLock, entry: AcquireEntry) {
    super(ACQUIRE_CHANNEL, { ...lock, entry }, [
      'queuedAfterMs',
      'waitedMs',
      'attempts',
      'handedOn',
      'fencingToken',
      'outcome',
      'error',
    ]);
  }

  waits(_holders: readonly Holder[], waitedMs: number): void {
    this.known.queuedAfterMs ??= waitedMs;
  }

  granted({ waitedMs, attempts, handedOn }: TracedGrant & { readonly handedOn: boolean }): undefined {
    Object.assign(this.known, { waitedMs, attempts, handedOn });
  }

  acquired(fencingToken: number, waitedMs: number): void {
    this.known.waitedMs ??= waitedMs;
    this.known.attempts ??= 0;
    this.known.fencingToken = fencingToken;
    this.known.outcome = 'acquired';
    this.end(false);
  }

  failed(error: unknown, waitedMs: number): void {
    this.known.waitedMs ??= waitedMs;
    this.known.attempts ??= (error as { attempts?: number } | undefined)?.attempts;
    this.known.outcome = outcomeOfError(error);
    this.known.error = error;
    this.end(true);
  }
}

/** A hold. The work under it begins later, so it runs in no context of a subscriber. */
export class PublishedHold extends Publication<LockHoldTrace> {
  constructor(lease: Lease, waitedMs: number, handedOn: boolean) {
    super(HOLD_CHANNEL, { ...lease, waitedMs, handedOn }, ['heldMs', 'outcome', 'reason', 'error']);
    this.begin();
  }

  ended({ outcome, heldMs, error }: TracedEnd): void {
    Object.assign(this.known, { outcome, heldMs, error });
    if (error instanceof LeaseLostError) this.known.reason = error.reason;
    this.end(error !== undefined);
  }
}

export class PublishedRenewal extends Publication<LockRenewTrace> implements RenewalTrace {
  constructor(lease: Lease, entry: LockRenewTrace['entry']) {
    super(RENEW_CHANNEL, { ...lease, entry }, ['outcome', 'error']);
  }

  ended(...[outcome, error]: Parameters<RenewalTrace['ended']>): void {
    Object.assign(this.known, { outcome, error });
    this.end(outcome === 'failed');
  }
}

export class PublishedRelease extends Publication<LockReleaseTrace> {
  constructor(lease: Lease, entry: LockReleaseTrace['entry']) {
    super(RELEASE_CHANNEL, { ...lease, entry }, ['inMemory', 'outcome', 'error']);
  }

  /** What is known first counts. */
  is(outcome: LockReleaseTrace['outcome'], inMemory = false): void {
    this.known.outcome ??= outcome;
    this.known.inMemory ??= inMemory;
  }

  ended(): void {
    this.is('released');
    this.end(false);
  }

  failed(error: unknown): void {
    Object.assign(this.known, { outcome: 'failed', error });
    this.known.inMemory ??= false;
    this.end(true);
  }
}

export class PublishedTick extends Publication<LockTickTrace> {
  constructor(tick: Pick<LockTickTrace, 'service' | 'group' | 'job' | 'tick'>) {
    super(TICK_CHANNEL, tick, ['fencingToken', 'rerun', 'ranMs', 'reason', 'outcome', 'error']);
  }

  is(known: Known<LockTickTrace>): void {
    Object.assign(this.known, known);
  }

  ended(): void {
    this.known.outcome ??= 'failed';
    this.end(false);
  }

  failed(error: unknown): void {
    this.known.outcome ??= 'failed';
    this.known.error = error;
    this.end(true);
  }
}
