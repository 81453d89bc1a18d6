import type { LockUnavailableError } from '../api/errors.js';
import { type Holders, OTHER_GROUP } from '../api/holder.js';
import type { LockMode } from '../api/lock-mode.js';
import { GROUP, groupNamed, MAX_GROUP } from '../api/resource.js';
import { describeValue } from '../api/validation.js';
import { inRootContext } from '../util/async-contexts.js';
import type { Origin } from '../util/call-site.js';
import { defined } from '../util/objects.js';
import { quote } from '../util/quoted.js';
import type { LockEvent, LockEventOf, LockEventType } from './events.js';

/**
 * Listens to lock events. Its errors and rejections are ignored, so an observer can never break a lock. It runs outside
 * the async context of any request: your `AsyncLocalStorage` has no store there.
 */
export type LockObserver = (event: LockEvent) => void;

export type EventTable = { readonly [T in LockEventType]?: (event: LockEventOf<T>) => void };

/** Observes the events of a table. @returns what `observe` returns */
export function observeBy<R>(
  table: EventTable,
  observe: (observer: LockObserver, types: readonly LockEventType[]) => R,
): R {
  const byType = table as Readonly<Record<LockEventType, LockObserver>>;
  return observe((event) => byType[event.type](event), Object.keys(table) as LockEventType[]);
}

interface DescribedCall {
  readonly mode: LockMode;
  readonly group?: string | undefined;
}

export class LockObservers {
  /** Each observer with the event types it wants; `undefined`: all types. */
  readonly #observers = new Map<LockObserver, readonly LockEventType[] | undefined>();
  /** The types that an observer listens to. Most events have no observer, and must cost nothing then. */
  #wanted: ReadonlySet<LockEventType> | 'all' = new Set();
  /** Set while contention is counted: called with the holders in each reply to a waiting call. */
  onAnswer: ((resource: string, seen: Holders) => void) | undefined;
  /**
   * Called, for the log, with each call that Redis did not answer or refused. `silentMs` is set if the call gave up
   * early: Redis may only be slow, as long as it has not been silent for this long.
   */
  onUnavailable: ((error: LockUnavailableError, silentMs?: number) => void) | undefined;
  /** Set while calls or renewals fail: called after each reply to one. Errors that it throws are ignored. */
  onAnswered: (() => void) | undefined;
  /** Set after an event that ended a wait, to find the origin of that call. */
  onOrigin: ((origin: Origin) => void) | undefined;

  constructor(
    observers: Iterable<LockObserver> = [],
    readonly service = 'default',
    readonly groups = new Groups(),
  ) {
    for (const observer of observers) this.add(observer);
  }

  /** Adds an observer of all events, or of some types. @returns a function that removes it */
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

  /** Returns true if an observer listens to events of this type. Ask before you build one. */
  wants(type: LockEventType): boolean {
    return this.#wanted === 'all' || this.#wanted.has(type);
  }

  emit(event: LockEvent): void {
    if (this.wants(event.type)) inRootContext(this.#tell, this, event);
  }

  answered(): void {
    if (this.onAnswered !== undefined) inRootContext(this.#emitAnswered, this);
  }

  describe(hold: {
    readonly storeLease: { readonly owner: { readonly resource: string } };
    readonly options: DescribedCall;
    readonly fencingToken: number;
  }) {
    const { storeLease, options, fencingToken } = hold;
    return { ...this.describeCall(storeLease.owner.resource, options), fencingToken };
  }

  describeCall(resource: string, { mode, group }: DescribedCall) {
    return { service: this.service, resource, mode, group: this.groups.of(resource, group) };
  }

  forceReleased(
    resource: string,
    ended: Omit<LockEventOf<'forceReleased'>, 'type' | 'service' | 'resource' | 'group'>,
  ): void {
    const { fencingToken, holder, label, by, reason } = ended;
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

  #emitAnswered(): void {
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

/**
 * The maximum number of groups with names from calls, including registered ones, that contention and metrics
 * distinguish.
 */
export const MAX_GROUPS = 200;

/** The allowed text before the first colon. It excludes e-mail addresses, for example. */
const PREFIX = /^[\p{L}\p{N}_$.-]{1,100}$/u;

/**
 * The shape of a name without a colon that code may define (`nightly-report`). Ids of data begin with a digit, or
 * contain several.
 */
const NAME_OF_CODE = /^\p{L}[\p{L}_$.-]*(?:\p{N}[\p{L}_$.-]*)?$/u;

/** The share of such names among the groups. If they come from data after all, names with a colon still have room. */
export const MAX_NAMES_OF_CODE = 50;

/** A decorated method, a job or a leadership, known at boot. */
export interface RegisteredGroup {
  readonly kind: 'method' | 'once' | 'job' | 'leadership';
  readonly group: string;
  readonly mode: LockMode;
  /** The name of the job or of the leadership; for a method, the group. */
  readonly name: string;
}

/** Returns the group of a resource for events and metrics; see the module option `group`. */
export type GroupFunction = (resource: string) => string;

/**
 * The groups of one lock service: static names of few values, for metrics. Names that come with calls, of which a
 * hostile client may send any number, get the places that are left.
 */
export class Groups {
  /** Each by itself: the text that is found has its hash already. */
  readonly #known = new Map<string, string>();
  readonly #registered = new Map<string, RegisteredGroup>();
  readonly #listeners = new Set<(registered: RegisteredGroup) => void>();
  #namesOfCode = 0;
  #hasWarned = false;

  /** @param warn called once if the user's function is wrong */
  constructor(
    private readonly ofResource?: GroupFunction,
    private readonly warn: (line: string) => void = () => {},
  ) {}

  /** @param stated the group of the method, the job or the call, if it has one */
  of(resource: string, stated?: string): string {
    return this.#admit(stated ?? this.#find(resource));
  }

  /**
   * Returns the group of a name, whatever its calls set. It takes no place among the groups of contention and metrics,
   * so it is computed each time.
   */
  ofName(resource: string): string {
    if (this.ofResource === undefined && !resource.includes(':')) {
      return resource.length <= MAX_GROUP && NAME_OF_CODE.test(resource) ? resource : OTHER_GROUP;
    }
    return this.#find(resource);
  }

  /** Gives a name of the program its place, whatever calls come later. */
  register(kind: RegisteredGroup['kind'], name: string, mode: LockMode = 'exclusive', stated = name): void {
    const group = groupNamed(stated);
    this.#known.set(group, group);
    const id = `${kind} ${mode} ${name} ${group}`;
    if (this.#registered.has(id)) return;
    const registered = { kind, group, mode, name };
    this.#registered.set(id, registered);
    for (const listener of this.#listeners) listener(registered);
  }

  /** Calls the listener with all registered groups, now and later. @returns a function that removes it */
  onRegistered(listener: (registered: RegisteredGroup) => void): () => void {
    this.#listeners.add(listener);
    for (const registered of this.#registered.values()) listener(registered);
    return () => void this.#listeners.delete(listener);
  }

  #admit(name: string): string {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const group = groupNamed(name);
    if (this.#known.has(group)) return group;
    if (group === OTHER_GROUP || this.#known.size >= MAX_GROUPS) return OTHER_GROUP;
    this.#known.set(group, group);
    return group;
  }

  #find(resource: string): string {
    if (!this.ofResource) {
      const end = resource.indexOf(':');
      if (end < 0) return this.#findWhole(resource);
      const prefix = end < 1 || end > MAX_GROUP ? '' : resource.slice(0, end);
      return PREFIX.test(prefix) ? prefix : OTHER_GROUP;
    }
    try {
      const group: unknown = this.ofResource(resource);
      if (typeof group === 'string' && GROUP.test(group)) return group;
      // It may reject, which would end the process.
      if (group instanceof Promise) group.catch(() => {});
      this.#warnOf(`returned ${describeValue(group)}`);
    } catch (error) {
      const hasText = error instanceof Error && typeof error.message === 'string';
      this.#warnOf(`threw ${hasText ? quote(error.message) : describeValue(error)}`);
    }
    return OTHER_GROUP;
  }

  #findWhole(name: string): string {
    if (this.#known.has(name)) return name;
    if (name.length > MAX_GROUP || this.#namesOfCode >= MAX_NAMES_OF_CODE || !NAME_OF_CODE.test(name)) {
      return OTHER_GROUP;
    }
    this.#namesOfCode++;
    return name;
  }

  #warnOf(what: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.warn(
      `The module option group ${what}. It must return a name of 1 to ${MAX_GROUP} characters for each resource. ` +
        `Metrics count such resources with all that have no group of their own. This is logged once. See docs/reference/events.md.`,
    );
  }
}
