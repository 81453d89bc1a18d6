import { inRootContext } from '../util/async-contexts.js';
import type { LockUnavailableError } from '../api/errors.js';
import type { LockMode } from '../api/lock-mode.js';
import type { Holders } from '../api/holder.js';
import type { Origin } from '../util/call-site.js';
import { defined } from '../util/objects.js';
import type { LockEvent, LockEventOf, LockEventType } from './events.js';
import { Groups } from './groups.js';

/**
 * Listens to lock events. Its errors and rejections are ignored, so an observer can never break a lock. It runs outside
 * the async context of any request: your `AsyncLocalStorage` has no store there.
 */
export type LockObserver = (event: LockEvent) => void;

/** A lease, as its events describe it. */
interface DescribedLease {
  readonly storeLease: { readonly owner: { readonly resource: string } };
  readonly options: { readonly mode: LockMode; readonly group?: string | undefined };
  readonly fencingToken: number;
}

/** A lease that an operator has ended. */
type EndedLease = Pick<LockEventOf<'forceReleased'>, 'fencingToken' | 'holder' | 'label' | 'by' | 'reason'>;

/** The observers of a lock service, in the order they were added. */
export class LockObservers {
  /** Each observer with the event types it wants; `undefined`: all types. */
  readonly #observers = new Map<LockObserver, readonly LockEventType[] | undefined>();
  /** The types that an observer listens to. Most events have no observer, and must cost nothing then. */
  #wanted: ReadonlySet<LockEventType> | 'all' = new Set();
  /** Set while contention is counted: told what each answer to a waiting call says of the holders. */
  onAnswer: ((resource: string, seen: Holders) => void) | undefined;
  /**
   * Told of each call that Redis did not answer, or refused, for the log. `silentMs` is set of a call that has given up
   * sooner: Redis may only be slow, as long as it has not been silent for this long.
   */
  onUnavailable: ((error: LockUnavailableError, silentMs?: number) => void) | undefined;
  /** Set while calls or renewals fail: told of each answer to one. What it throws is ignored. */
  onAnswered: (() => void) | undefined;
  /** Set after an event that ended the wait of a call, to find out where that call came from. */
  onOrigin: ((origin: Origin) => void) | undefined;

  constructor(
    observers: Iterable<LockObserver> = [],
    readonly service = 'default',
    readonly groups = new Groups(),
  ) {
    for (const observer of observers) this.add(observer);
  }

  /**
   * Adds an observer of all events, or of some types.
   *
   * @returns a function that removes it
   */
  add<T extends LockEventType>(observer: (event: LockEventOf<T>) => void, types?: readonly T[]): () => void {
    // It is called with these types only.
    const each = observer as LockObserver;
    this.#observers.set(each, types);
    this.#findWanted();
    return () => {
      this.#observers.delete(each);
      this.#findWanted();
    };
  }

  /** Whether an observer listens to events of this type. Ask before you make one. */
  wants(type: LockEventType): boolean {
    return this.#wanted === 'all' || this.#wanted.has(type);
  }

  emit(event: LockEvent): void {
    if (this.wants(event.type)) inRootContext(this.#tell, this, event);
  }

  /** Redis has answered a call or a renewal. */
  answered(): void {
    if (this.onAnswered !== undefined) inRootContext(this.#tellOfAnswer, this);
  }

  /** What all events of a lease say. */
  describe({ storeLease, options, fencingToken }: DescribedLease) {
    return { ...this.describeCall(storeLease.owner.resource, options), fencingToken };
  }

  /** What all events of a call to acquire say. */
  describeCall(resource: string, { mode, group }: DescribedLease['options']) {
    return { service: this.service, resource, mode, group: this.groups.of(resource, group) };
  }

  /** Tells that an operator has ended a lease. */
  forceReleased(resource: string, { fencingToken, holder, label, by, reason }: EndedLease): void {
    this.emit({
      type: 'forceReleased',
      service: this.service,
      resource,
      group: this.groups.of(resource),
      fencingToken,
      ...defined({ holder, label, by, reason }),
    });
  }

  #tell(event: LockEvent): void {
    for (const [observer, types] of this.#observers) {
      if (types && !types.includes(event.type)) continue;
      try {
        const result: unknown = observer(event);
        // TypeScript accepts an async function here.
        if (result instanceof Promise) result.catch(() => {});
      } catch {
        // See LockObserver.
      }
    }
  }

  #tellOfAnswer(): void {
    try {
      this.onAnswered?.();
    } catch {
      // See LockObserver.
    }
  }

  #findWanted(): void {
    const types = [...this.#observers.values()];
    this.#wanted = types.includes(undefined) ? 'all' : new Set(types.flatMap((some) => some ?? []));
  }
}
