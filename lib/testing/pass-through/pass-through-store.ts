import { type Holder, readLabel } from '../../core/api/holder.js';
import { LOCK_DEFAULTS } from '../../core/api/lock-options.js';
import type { AcquireReply, LockOwner, LockStore, RotateReply } from '../../core/store/lock-store.js';
import type { LockState } from '../../core/store/lock-state.js';
import type { RollCalls, StoreListener } from '../../core/store/hearing.js';
import { instanceOf } from '../../core/store/ask.js';
import type { StoreProbe } from '../../core/store/store-probe.js';
import type { Tick, TickClaim, TickReply } from '../../core/store/job-claims.js';
import type { JobClaims } from '../../core/store/job-store.js';
import type { WatchReply } from '../../core/store/watch-store.js';

/** What an owner holds, as the store remembers it. */
interface Held extends LockOwner {
  readonly fencingToken: number;
  readonly depth: number;
  readonly grantedAt: number;
  /** Whether no caller has asked for it. */
  readonly isAssumed: boolean;
}

/** No lease ends by itself: this is what operators see of each. */
const LEASE_MS = LOCK_DEFAULTS.leaseMs;

let clients = 0;

/** Grants everything at once to every owner, and remembers what is held. For unit tests: it excludes nothing. */
export class PassThroughStore implements LockStore {
  readonly clientId: string;
  /** By owner id. */
  readonly #held = new Map<string, Held>();
  #lastToken = 0;
  #listener: StoreListener | undefined;
  readonly #answers = new Map<string, string>();
  /** The only instance there is answers. */
  readonly rollCalls: RollCalls = {
    call: async (call) => {
      this.#answers.clear();
      this.#listener?.called?.(call);
      return { ...call, askedAt: Date.now(), ageMs: 0, asked: 1 };
    },
    answer: async (_nonce, answer) => this.#answers.set(this.clientId, answer).size > 0,
    count: async () => this.#answers.size,
    read: async () => this.#answers,
    connected: async () => [this.clientId],
  };

  constructor(readonly instanceId: string) {
    this.clientId = `${instanceId}/${++clients}`;
  }

  /** @param isAssumed whether no caller has asked for it */
  grant(owner: LockOwner, isAssumed = false): number {
    const standing = this.#held.get(owner.id);
    if (standing) return standing.fencingToken;
    const fencingToken = ++this.#lastToken;
    this.#held.set(owner.id, { ...owner, fencingToken, depth: 1, grantedAt: Date.now(), isAssumed });
    return fencingToken;
  }

  async acquire(waiter: LockOwner): Promise<AcquireReply> {
    return { status: 'granted', fencingToken: this.grant(waiter) };
  }

  async rotate(owner: LockOwner, waiter: LockOwner): Promise<RotateReply> {
    return { released: this.#held.delete(owner.id), next: await this.acquire(waiter) };
  }

  async setDepth(owner: LockOwner, depth: number): Promise<boolean> {
    return this.#change(owner, { depth });
  }

  async renew(owner: LockOwner): Promise<boolean> {
    return this.#held.has(owner.id);
  }

  async release(owner: LockOwner): Promise<boolean> {
    return this.#held.delete(owner.id);
  }

  /** The resource is free for every caller, so it does not stay taken either. */
  async retain(owner: LockOwner): Promise<boolean> {
    return this.#held.delete(owner.id);
  }

  async label(owner: LockOwner, label: string | undefined): Promise<boolean> {
    return this.#change(owner, { label });
  }

  async verify(owner: LockOwner): Promise<boolean> {
    return this.#held.has(owner.id);
  }

  async downgrade(owner: LockOwner): Promise<boolean> {
    return this.#change(owner, { mode: 'read', depth: 1 });
  }

  async raiseToken(owner: LockOwner, fencingToken: number): Promise<boolean> {
    this.#lastToken = Math.max(this.#lastToken, fencingToken);
    const { fencingToken: own = fencingToken } = this.#held.get(owner.id) ?? {};
    return this.#change(owner, { fencingToken: Math.max(own, fencingToken) });
  }

  async lowerPermits(owner: LockOwner, count: number): Promise<boolean> {
    const permits = this.#held.get(owner.id)?.permits;
    if (!permits) return false;
    return this.#change(owner, { permits: { ...permits, count: Math.min(permits.count, count) } });
  }

  async resize(resource: string, total: number): Promise<boolean> {
    for (const { id, permits } of this.#of(resource)) {
      if (!permits) return false;
      this.#held.set(id, { ...this.#held.get(id)!, permits: { ...permits, total } });
    }
    return true;
  }

  async watch(): Promise<WatchReply> {
    return { isFree: true, ttlMs: 0 };
  }

  /** One counter numbers the leases of all resources. */
  fenceOf(): string {
    return 'fence';
  }

  trouble(): undefined {}

  async inspect(resource: string): Promise<LockState> {
    const held = this.#of(resource);
    const [first] = held;
    if (!first) return { resource, mode: null, holders: [], ttlMs: 0, waiters: [] };
    const { mode } = first;
    const state = { resource, mode, holders: held.map(describe), ttlMs: LEASE_MS, waiters: [] };
    if (mode !== 'semaphore') return state;
    const total = held.at(-1)!.permits?.total ?? 1;
    const taken = held.reduce((sum, { permits }) => sum + (permits?.count ?? 1), 0);
    return { ...state, permits: { total, available: Math.max(0, total - taken) } };
  }

  probe(): StoreProbe {
    const servers = [Promise.resolve({ roundTripMs: 0, problems: [] })];
    return { topology: 'memory', needed: 1, servers, problems: [] };
  }

  async list(prefix: string, limit: number): Promise<string[]> {
    const shown = [...this.#held.values()].filter(({ isAssumed }) => !isAssumed);
    const resources = new Set(shown.map(({ resource }) => resource));
    return [...resources].filter((resource) => resource.startsWith(prefix)).slice(0, limit);
  }

  async forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    const meant = this.#of(resource).find((held) => held.fencingToken === fencingToken);
    return meant !== undefined && this.#held.delete(meant.id);
  }

  /** It sends no messages but of roll calls. */
  listen(listener: StoreListener): void {
    this.#listener = listener;
  }

  async close(): Promise<void> {}

  #of(resource: string): Held[] {
    return [...this.#held.values()].filter((held) => held.resource === resource && !held.isAssumed);
  }

  #change({ id }: LockOwner, change: Partial<Held>): boolean {
    const held = this.#held.get(id);
    if (held) this.#held.set(id, { ...held, ...change });
    return held !== undefined;
  }
}

function describe({ id, mode, fencingToken, depth, permits, label, grantedAt }: Held): Holder {
  return {
    instanceId: instanceOf(id),
    isThisProcess: true,
    mode,
    fencingToken,
    ttlMs: LEASE_MS,
    leaseMs: LEASE_MS,
    heldMs: Math.max(0, Date.now() - grantedAt),
    depth,
    ...(permits && { permits: permits.count }),
    ...readLabel(label),
  };
}

/** Grants every tick, also one that has run already. */
export class PassThroughClaims implements JobClaims {
  constructor(private readonly store: PassThroughStore) {}

  async claim(_tick: Tick, { owner }: TickClaim): Promise<TickReply> {
    return { status: 'granted', fencingToken: this.store.grant(owner), attempt: 1 };
  }

  async end(): Promise<boolean> {
    return true;
  }
}
