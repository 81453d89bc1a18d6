import { ask } from '../../../kernel/store/ask.js';
import {
  type Contention,
  CONTENTION_OPTIONS,
  CONTENTION_SETTINGS,
  type ContentionOptions,
  type ContentionSettings,
} from './contention/contention.js';
import { ContentionProfile } from './contention/contention-profile.js';
import type { BlockedTime } from '../../../kernel/events/telemetry.js';
import { Explainer } from './explain/explainer.js';
import type { JobOverlap, LockExplanation } from './explain/explanation.js';
import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { readLabel } from '../../../kernel/api/holder.js';
import { fencingTickOf } from '../../../kernel/store/fencing-token.js';
import type { LockState } from '../../../kernel/store/lock-state.js';
import { OPERATOR, Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { checkResource } from '../../../kernel/api/resource.js';

/** Options of `locks.list()`. */
export interface ListOptions {
  /**
   * Lists only resources whose names start with this; an empty text lists all.
   *
   * @allowed text
   * @default ''
   */
  prefix?: string;
  /**
   * The maximum number of resources to return.
   *
   * @allowed 1 to 10000
   * @default 100
   */
  limit?: number;
}

/** Options of `locks.forceRelease()`: the lease to end. */
export interface ForceReleaseOptions {
  /**
   * The token of the lease to end, from `inspect` or a log. Later leases are not affected.
   *
   * @allowed a fencing token
   */
  fencingToken: number;
  /**
   * The person or program that ends the lease, for the log and the event.
   *
   * @allowed 1 to 100 characters
   * @default none
   */
  by?: string;
  /**
   * The reason, for the log and the event.
   *
   * @allowed 1 to 200 characters
   * @default none
   */
  reason?: string;
}

export const LIST_OPTIONS = new OptionTable({
  prefix: Option.text(/^/, 'a string').default(''),
  limit: Option.integer(1, 10_000, 'resources').default(100),
} satisfies OptionsOf<ListOptions>);

export const FORCE_RELEASE_OPTIONS = new OptionTable({
  fencingToken: Option.atLeast(1, 'a fencing token'),
  ...OPERATOR,
} satisfies OptionsOf<ForceReleaseOptions>);

/** The view of operators, and their commands: the locks of all processes. */
export class OperatorsView {
  readonly #profile: ContentionProfile;
  readonly #explainer: Explainer;

  constructor(
    private readonly deps: KernelParts,
    { fromStart = false, callSiteEvery = CONTENTION_SETTINGS.defaults.callSiteEvery }: ContentionSettings = {},
    overlapOf: (resource: string) => Promise<JobOverlap | undefined> = async () => undefined,
  ) {
    const { observers, clock, store } = deps;
    const ownLease = (resource: string, token: number) => this.#ownLease(resource, token);
    const waitingNow = () => deps.localQueues.waitingByResource();
    const { instanceId } = store;
    this.#profile = new ContentionProfile({ observers, clock, instanceId, ownLease, waitingNow, callSiteEvery });
    this.#explainer = new Explainer(deps, (resource) => this.#look(resource, 'explain'), overlapOf);
    if (fromStart) this.#profile.start();
  }

  async inspect(resource: string): Promise<LockState> {
    return this.#look(resource, 'inspect');
  }

  async #look(resource: string, operation: 'inspect' | 'explain'): Promise<LockState> {
    const name = checkResource(resource, operation);
    const { store, localQueues } = this.deps;
    const state = await ask(this.deps, () => store.inspect(name), operation, name);
    const { instanceId } = store;
    const first = localQueues.waitingFor(name)?.first.options;
    if (!first || state.waiters.some((waiter) => waiter.instanceId === instanceId)) return state;
    // The calls behind a holder of this process join the queue in Redis when it releases.
    const { label } = readLabel(first.label);
    const permits = first.permits && { permits: first.permits.count };
    const waiter = { instanceId, mode: first.mode, ...permits, ...(label && { label }) };
    return { ...state, waiters: [...state.waiters, waiter] };
  }

  async list(options: ListOptions = {}): Promise<LockState[]> {
    LIST_OPTIONS.check('list', options);
    return (await this.scan(LIST_OPTIONS.filled(options))).states;
  }

  /** The same, and whether there may be more. */
  async scan({ prefix, limit }: Required<ListOptions>): Promise<{ states: LockState[]; isCut: boolean }> {
    const giveUp = new AbortController();
    const listing = ask(this.deps, () => this.deps.store.list(prefix, limit, giveUp.signal), 'list', prefix);
    // No caller waits for the rest.
    const resources = await listing.finally(() => giveUp.abort());
    const looks = await Promise.allSettled(resources.sort().map((resource) => this.inspect(resource)));
    const states = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
    // One key of another application is no reason to show nothing.
    const failed = looks.find((look) => look.status === 'rejected');
    if (failed && states.length === 0) throw failed.reason;
    // A lock that has just ended is not listed.
    const inUse = states.filter(({ mode, waiters }) => mode !== null || waiters.length > 0);
    return { states: inUse, isCut: resources.length >= limit };
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
    this.deps.localQueues.doubt(name);
    // Sent before the command that ends the lease. Only the event depends on it.
    const seen = this.deps.observers.wants('forceReleased') ? this.inspect(name).catch(() => undefined) : undefined;
    const send = () => this.deps.store.forceRelease(name, options.fencingToken);
    const hasEnded = await ask(this.deps, send, 'forceRelease', name);
    if (hasEnded) this.#emitForceReleased(name, options, await seen);
    return hasEnded;
  }

  #emitForceReleased(resource: string, options: ForceReleaseOptions, seen?: LockState): void {
    const tick = fencingTickOf(options.fencingToken);
    const holder = seen?.holders.find((each) => fencingTickOf(each.fencingToken) === tick);
    const known = holder && { holder: holder.instanceId, ...(holder.label && { label: holder.label }) };
    this.deps.observers.forceReleased(resource, { ...options, ...known });
  }

  explain(...asked: Parameters<Explainer['explain']>): Promise<LockExplanation> {
    return this.#explainer.explain(...asked);
  }

  contention(options: ContentionOptions = {}): Contention {
    CONTENTION_OPTIONS.check('contention', options);
    const { top = CONTENTION_OPTIONS.defaults.top, reset = CONTENTION_OPTIONS.defaults.reset } = options;
    return this.#profile.read(top, reset);
  }

  /** For metrics, see {@link ContentionProfile.onBlocked}. */
  onBlocked(listener: (blocked: BlockedTime) => void, isQuiet?: boolean): () => void {
    return this.#profile.onBlocked(listener, isQuiet);
  }

  #ownLease(resource: string, fencingToken: number): { fencingToken: number; group: string } | undefined {
    const { localQueues, watchdog, observers } = this.deps;
    const tick = fencingTickOf(fencingToken);
    const holder =
      localQueues.holderOf(resource, fencingToken) ??
      // A lease that was polled for is in no queue.
      watchdog.holdersOf(resource).find((each) => fencingTickOf(each.fencingToken) === tick);
    return holder && { fencingToken: holder.fencingToken, group: observers.groups.of(resource, holder.options.group) };
  }
}
