import { aborted } from '../../../kernel/acquiring/acquire-errors.js';
import { completeError, showCaller } from '../../../kernel/acquiring/failed-calls.js';
import {
  InvalidLockOptionsError,
  LockAbortedError,
  LockError,
  LockShutdownError,
  LockUnavailableError,
} from '../../../kernel/api/errors.js';
import { LeaseLostError, LockReentryError } from '../../../kernel/api/lease-errors.js';
import type { Lease, LockedWork } from '../../../kernel/api/lease.js';
import { checkClearResource, checkOwnResource, onceResource } from '../../../kernel/api/resource.js';
import { checkWork } from '../../../kernel/api/work.js';
import { StoreLease } from '../../../kernel/holding/store-lease.js';
import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import type { LeaseFactory } from '../../../kernel/lease/lease-factory.js';
import { ask, createOwner, withTimeout } from '../../../kernel/store/ask.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { Deferred } from '../../../kernel/util/promises.js';
import { mergeSignals } from '../../../kernel/util/signals.js';
import type { LockWatches } from '../../watch/core/lock-watches.js';
import { decodeResult } from './encoded-result.js';
import { checkOnceOptions, fillOnceOptions, type OnceOptions } from './once-options.js';
import { type AskingCall, OnceQuestions } from './once-questions.js';
import { ResultRelease, serialized } from './once-run.js';
import type { ResultStore } from './result-store.js';
import { LockBusyError, LockTimeoutError } from '../../../kernel/api/busy-errors.js';

/** A result as text, and the loss of the lease under which its work ended. */
interface Landed {
  readonly encoded: string;
  readonly loss?: LeaseLostError | undefined;
}

/**
 * The end of the one call of this process that works, or waits for another process, in place of the others with its
 * key. `vacated`: it gave up for a reason of its own, so another call takes its place.
 */
type FlightEnd = { readonly landed: Landed } | { readonly failed: unknown } | 'vacated';

type Flight = Deferred<FlightEnd>;

interface Call extends AskingCall {
  readonly key: string;
  readonly work: LockedWork<unknown>;
  /** The group that the caller has set. */
  readonly group: string | undefined;
  hasBegun: boolean;
}

/** The calls of `once` of one process. */
export class OnceCalls {
  readonly #flights = new Map<string, Flight>();
  readonly #questions: OnceQuestions;
  readonly #checkName: typeof checkOwnResource;

  /** @param results `undefined` if the store keeps none */
  constructor(
    private readonly deps: KernelParts,
    private readonly leases: LeaseFactory,
    watches: LockWatches,
    private readonly results: ResultStore | undefined,
    suspiciousNames: 'refuse' | 'allow' = 'refuse',
  ) {
    this.#questions = new OnceQuestions(deps, watches, results);
    this.#checkName = suspiciousNames === 'allow' ? checkOwnResource : checkClearResource;
  }

  /** @throws InvalidLockOptionsError if the store can't store results */
  assertSupported(where: string): ResultStore {
    if (this.results !== undefined) return this.results;
    throw new InvalidLockOptionsError(
      `${where} cannot be used on a quorum: its nodes vote on locks, and no node alone knows the newest result. Register ` +
        'the module a second time, with one Redis and a service name of its own, and store results there.',
      'quorum',
    );
  }

  async run<T>(key: unknown, options: OnceOptions<T>, work: LockedWork<T>): Promise<T> {
    const call = this.#begin(key, options as OnceOptions, work);
    try {
      return (await this.#resultOf(call)) as T;
    } catch (error) {
      this.#complete(error, call);
      throw error;
    }
  }

  async forget(key: unknown): Promise<void> {
    const results = this.assertSupported('forget()');
    const resource = onceResource(this.#checkName(key, 'forget'));
    await ask(this.deps, () => results.forget(resource), 'forget the result of', resource);
    // Its work may have begun before that: calls that come now do not share its result.
    this.#flights.delete(resource);
  }

  #begin(key: unknown, given: OnceOptions, work: LockedWork<unknown>): Call {
    const { clock, context, defaults, shutdownSignal } = this.deps;
    this.assertSupported('once()');
    const name = this.#checkName(key, 'once');
    const resource = onceResource(name);
    checkOnceOptions('once options', given);
    checkWork(work, 'once');
    if (context.hold(resource)) throw LockReentryError.waitingForItself(resource, 'exclusive', 'exclusive');
    const options = fillOnceOptions(given, defaults);
    const startedAt = clock.now();
    return {
      key: name,
      resource,
      work,
      options,
      group: given.group,
      startedAt,
      giveUpAt: startedAt + options.lock.waitMs,
      closing: shutdownSignal(),
      attempts: 0,
      outcome: 'hit',
      hasBegun: false,
    };
  }

  async #resultOf(call: Call): Promise<unknown> {
    const { resource, options } = call;
    const mayWait = options.lock.waitMs > 0;
    // A call that is under way has found no result.
    if (!mayWait || !this.#flights.has(resource)) {
      const kept = await this.#read(call);
      if (kept) return this.#returned(call, kept.value);
    }
    for (;;) {
      const flight = mayWait ? this.#flights.get(resource) : undefined;
      const landed = await (flight ? this.#join(flight, call) : this.#lead(call));
      if (landed === undefined) continue;
      const value = this.#valueOf(call, landed);
      if (landed.loss === undefined || options.onLost === 'ignore') return this.#returned(call, value);
      throw LeaseLostError.afterWork(landed.loss, value);
    }
  }

  #returned(call: Call, value: unknown): unknown {
    const { observers, clock } = this.deps;
    if (observers.wants('onceReturned')) {
      const waitedMs = clock.now() - call.startedAt;
      observers.emit({ type: 'onceReturned', ...this.#describe(call), outcome: call.outcome, waitedMs });
    }
    return value;
  }

  /** Waits for the call that leads. Resolves to `undefined` if that gave up for a reason of its own. */
  async #join(flight: Flight, call: Call): Promise<Landed | undefined> {
    const { alarms, clock } = this.deps;
    const { resource, closing, options } = call;
    const { signal, dispose } = mergeSignals(closing, options.lock.signal);
    call.outcome = 'wait';
    const answer = await withTimeout(alarms, flight.promise, call.giveUpAt - clock.now(), signal);
    dispose();
    if (answer.outcome === 'aborted') throw aborted(resource, closing, options.lock.signal);
    if (answer.outcome !== 'answered') {
      const waitedMs = clock.now() - call.startedAt;
      throw new LockTimeoutError(resource, { waitedMs, attempts: 0, retryAfterMs: 0 });
    }
    const end = answer.value;
    if (end === 'vacated') return undefined;
    if ('failed' in end) throw end.failed;
    return end.landed;
  }

  /** Works, or waits for another process, for all calls of this process. */
  async #lead(call: Call): Promise<Landed> {
    const { resource } = call;
    const flight: Flight = new Deferred();
    // With waitMs 0, another one may lead.
    if (!this.#flights.has(resource)) this.#flights.set(resource, flight);
    try {
      const landed = await this.#land(call);
      flight.resolve({ landed });
      return landed;
    } catch (error) {
      flight.resolve(isOfCall(error, call) ? 'vacated' : { failed: error });
      throw error;
    } finally {
      if (this.#flights.get(resource) === flight) this.#flights.delete(resource);
    }
  }

  async #land(call: Call): Promise<Landed> {
    const { resource, closing, options } = call;
    const { lock } = options;
    for (;;) {
      if (closing.aborted || lock.signal?.aborted) throw aborted(resource, closing, lock.signal);
      const owner = createOwner(resource, lock, this.deps);
      const { reply, sentAt } = await this.#questions.claim(call, owner);
      if (reply.status === 'granted') {
        const landed = await this.#run(call, owner, reply.fencingToken, sentAt);
        if (landed) return landed;
        this.#checkTime(call);
      } else if (reply.status === 'kept') {
        if (this.#parsed(call, reply.result)) return { encoded: reply.result };
        this.#checkTime(call);
      } else {
        await this.#questions.waitUntilFree(call, reply);
      }
    }
  }

  /** @throws LockTimeoutError if no time is left to try again */
  #checkTime({ resource, startedAt, giveUpAt, attempts }: Call): void {
    const now = this.deps.clock.now();
    if (now < giveUpAt) return;
    throw new LockTimeoutError(resource, { waitedMs: now - startedAt, attempts, retryAfterMs: 0 });
  }

  /** Runs the work. Resolves to `undefined` if the lease ended before the work was called. */
  async #run(call: Call, owner: LockOwner, fencingToken: number, sentAt: number): Promise<Landed | undefined> {
    const { deps, leases } = this;
    const { options, resource, key, startedAt, attempts } = call;
    const { lock, resultTtlMs, maxBytes } = options;
    const end = new ResultRelease(this.results!, deps.store, owner, resultTtlMs);
    const storeLease = new StoreLease(owner, fencingToken, sentAt, lock, deps.clock, undefined, end);
    const grouped = { ...lock, group: this.#groupOf(call) };
    const lease = leases.hold({ storeLease, attempts, waitedMs: deps.clock.now() - startedAt }, grouped);
    end.hold = lease.hold;
    let encoded = '';
    const work = async (held: Lease): Promise<void> => {
      call.hasBegun = true;
      call.outcome = 'run';
      encoded = serialized(await call.work(held), key, options);
      // Without its first character.
      const bytes = Buffer.byteLength(encoded) - 1;
      if (bytes <= maxBytes) end.result = encoded;
      else deps.observers.emit({ type: 'resultTooLarge', ...this.#describe(call), bytes, maxBytes });
    };
    try {
      await leases.runUnder(lease, work, 'ignore');
    } catch (error) {
      if (!call.hasBegun && error instanceof LeaseLostError) return undefined;
      throw error;
    }
    const takenOver = end.isTakenOver ? new LeaseLostError(resource, 'takenOver', fencingToken) : undefined;
    return { encoded, loss: lease.hold.loss ?? takenOver };
  }

  /** Returns the stored result, if there is one that this call can read. */
  async #read(call: Call): Promise<{ readonly value: unknown } | undefined> {
    const encoded = await this.#questions.read(call);
    return encoded === undefined ? undefined : this.#parsed(call, encoded);
  }

  /** Returns `undefined` for a text that this call cannot read. It then counts as none. */
  #parsed(call: Call, encoded: string): { readonly value: unknown } | undefined {
    try {
      return { value: decodeResult(encoded, call.options.parse) };
    } catch (error) {
      // The same text is read again under the lock.
      if (call.unreadable !== encoded) {
        this.deps.observers.emit({ type: 'resultUnreadable', ...this.#describe(call), error });
      }
      call.unreadable = encoded;
      return undefined;
    }
  }

  /** Each call gets an object of its own, also the one that did the work: all see the same. */
  #valueOf({ key, options }: Call, { encoded }: Landed): unknown {
    try {
      return decodeResult(encoded, options.parse);
    } catch (cause) {
      throw new InvalidLockOptionsError(
        `parse of once(${JSON.stringify(key)}) cannot read the text that serialize returned. Pass two functions that ` +
          'match each other, the same in all calls with this key.',
        'parse',
        { cause },
      );
    }
  }

  #groupOf({ key, group }: Call): string {
    return this.deps.observers.groups.of(key, group);
  }

  #describe(call: Call) {
    return { service: this.deps.observers.service, group: this.#groupOf(call), resource: call.resource };
  }

  /** Adds the group and the frames of the caller. */
  #complete(error: unknown, call: Call): void {
    if (!(error instanceof LockError) || error.resource !== call.resource || error.group !== undefined) return;
    if (call.group !== undefined) return completeError(error, { group: call.group }, this.deps);
    error.group = this.#groupOf(call);
    showCaller(error);
  }
}

/** Returns true if the call gave up because of its own options: the others need not. */
function isOfCall(error: unknown, { hasBegun, options: { lock } }: Call): boolean {
  if (hasBegun) return false;
  if (error instanceof LockUnavailableError) return lock.waitMs < lock.unavailableMs;
  return error instanceof LockBusyError || error instanceof LockAbortedError || error instanceof LockShutdownError;
}
