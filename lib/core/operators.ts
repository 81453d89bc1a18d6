import type { Alarms } from './util/alarms.js';
import { ask } from './store/ask.js';
import type { LocalQueues } from './acquiring/local-queues.js';
import { InvalidLockOptionsError } from './api/errors.js';
import { readLabel } from './api/label.js';
import type { LockState, LockStore } from './store/lock-store.js';
import { count, integer, type OptionsOf, OptionTable, text } from './api/option-table.js';
import { checkResource } from './api/resource.js';

/** What `locks.list()` takes. */
export interface ListOptions {
  /**
   * Lists only the resources whose names begin with this. The empty text lists all of them.
   *
   * @allowed text
   * @default ''
   */
  prefix?: string;
  /**
   * How many resources to return at most.
   *
   * @allowed 1 to 10000
   * @default 100
   */
  limit?: number;
}

/** Which lease `locks.forceRelease()` ends. */
export interface ForceReleaseOptions {
  /**
   * The token of the lease to end, as `inspect` or a log shows it. A later lease of the resource is left alone.
   *
   * @allowed a fencing token
   */
  fencingToken: number;
}

export const LIST_OPTIONS = new OptionTable({
  prefix: text(/^/, 'a string').default(''),
  limit: integer(1, 10_000, 'resources').default(100),
} satisfies OptionsOf<ListOptions>);

export const FORCE_RELEASE_OPTIONS = new OptionTable({
  fencingToken: count(1, 'a fencing token'),
} satisfies OptionsOf<ForceReleaseOptions>);

/** What an operator can see and do: the locks of all processes. */
export class OperatorsView {
  constructor(
    private readonly store: LockStore,
    private readonly localQueues: LocalQueues,
    private readonly alarms: Alarms,
    private readonly attemptTimeoutMs: number,
  ) {}

  async inspect(resource: string): Promise<LockState> {
    const name = checkResource(resource, 'inspect');
    const state = await this.#ask(() => this.store.inspect(name), 'inspect', name);
    const { instanceId } = this.store;
    const first = this.localQueues.firstWaiting(name);
    if (!first || state.waiters.some((waiter) => waiter.instanceId === instanceId)) return state;
    // The calls behind a holder of this process join the queue in Redis when it releases.
    const { label } = readLabel(first.label);
    const permits = first.permits && { permits: first.permits.count };
    const waiter = { instanceId, mode: first.mode, ...permits, ...(label && { label }) };
    return { ...state, waiters: [...state.waiters, waiter] };
  }

  async list(options: ListOptions = {}): Promise<LockState[]> {
    LIST_OPTIONS.check('list', options);
    const { prefix = LIST_OPTIONS.defaults.prefix, limit = LIST_OPTIONS.defaults.limit } = options;
    const giveUp = new AbortController();
    const listing = this.#ask(() => this.store.list(prefix, limit, giveUp.signal), 'list', prefix);
    // No caller waits for the rest.
    const resources = await listing.finally(() => giveUp.abort());
    const looks = await Promise.allSettled(resources.sort().map((resource) => this.inspect(resource)));
    const states = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
    // One key of another application is no reason to show nothing.
    const failed = looks.find((look) => look.status === 'rejected');
    if (failed && states.length === 0) throw failed.reason;
    // A lock that has ended meanwhile is not listed.
    return states.filter(({ mode, waiters }) => mode !== null || waiters.length > 0);
  }

  async forceRelease(resource: string, options: ForceReleaseOptions): Promise<boolean> {
    const name = checkResource(resource, 'forceRelease');
    FORCE_RELEASE_OPTIONS.check('forceRelease', options);
    if (options.fencingToken === undefined) {
      throw new InvalidLockOptionsError(
        'fencingToken is missing: pass the token of the lease to end, as inspect() shows it.',
        'fencingToken',
      );
    }
    // Before the command: if this process holds the lease, its next local lease would get a smaller token than the next
    // holder in Redis.
    this.localQueues.doubt(name);
    return this.#ask(() => this.store.forceRelease(name, options.fencingToken), 'forceRelease', name);
  }

  resize(resource: string, permits: number): Promise<boolean> {
    return this.#ask(() => this.store.resize(resource, permits), 'resize', resource);
  }

  #ask<T>(send: () => Promise<T>, operation: string, resource: string): Promise<T> {
    return ask(this.alarms, send, this.attemptTimeoutMs, operation, resource);
  }
}
