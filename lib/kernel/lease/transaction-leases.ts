import { nullIfBusy } from '../acquiring/acquire-errors.js';
import { InvalidLockOptionsError } from '../api/errors.js';
import { LockReentryError } from '../api/lease-errors.js';
import type { LockedWork, TryUsingResult } from '../api/lease.js';
import type { OnLost, ResolvedLockOptions } from '../api/lock-options.js';
import type { TransactionHooks } from '../api/transactions.js';
import { describeValue } from '../api/validation.js';
import type { LocalHolder } from '../holding/store-lease.js';
import { type Acquired, CompositeLease } from './composite-lease.js';
import type { KernelParts } from './kernel-parts.js';
import type { SingleLease } from './single-lease.js';

type Deps = Pick<KernelParts, 'context'>;

/** The steps of `using`. */
interface UsingSteps {
  acquire(names: readonly string[], options: ResolvedLockOptions): Promise<Acquired>;
  runUnder<T>(
    lease: Acquired,
    work: LockedWork<T>,
    onLost: OnLost | undefined,
    transaction: OpenTransaction,
  ): Promise<T>;
}

export class TransactionLeases {
  readonly #open = new WeakMap<object, OpenTransaction>();

  constructor(
    private readonly hooks: TransactionHooks,
    private readonly deps: Deps,
    private readonly leases: UsingSteps,
  ) {}

  current(): OpenTransaction | undefined {
    const transaction: unknown = this.hooks.current();
    if (transaction === undefined || transaction === null) return undefined;
    if (typeof transaction !== 'object') throw noTransaction(transaction);
    const known = this.#open.get(transaction);
    if (known) return known.hasEnded ? undefined : known;
    const open = new OpenTransaction(this.deps, this.leases);
    this.hooks.runOnEnd(transaction, () => open.end());
    this.#open.set(transaction, open);
    return open;
  }
}

const keptHolds = new WeakSet<LocalHolder>();

/**
 * Returns true if the work under the hold has ended, but a database transaction keeps the lock until it ends itself.
 */
export function isKeptByTransaction(hold: LocalHolder): boolean {
  return keptHolds.has(hold);
}

export class OpenTransaction {
  /** By resource. A lock has one lease here, a semaphore may have several. */
  readonly #kept = new Map<string, SingleLease[]>();
  /** The resources that a running call of this transaction has locked, or waits for. */
  readonly #claimed = new Set<string>();
  #hasEnded = false;

  constructor(
    private readonly deps: Deps,
    private readonly leases: UsingSteps,
  ) {}

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Runs the work under a lease that is released at the end of the transaction. A lease that the transaction already
   * has is used again: a second one would have to wait for the first. @returns whether it ran: a call may be refused
   */
  async using<T>(
    names: readonly string[],
    options: ResolvedLockOptions,
    mayBeRefused: boolean,
    work: LockedWork<T>,
  ): Promise<TryUsingResult<T>> {
    const claimed = options.permits ? [] : this.#claim(names);
    try {
      const lease = await this.#acquire(names, options, mayBeRefused);
      if (lease === null) return { ran: false };
      return { ran: true, value: await this.leases.runUnder(lease, work, options.onLost, this) };
    } finally {
      for (const name of claimed) this.#claimed.delete(name);
    }
  }

  /** Keeps the lease of work that has ended. Releases at once what an outer entry keeps, or what comes too late. */
  async keep(lease: Acquired): Promise<void> {
    for (const part of partsOf(lease)) {
      if (part.isReleased) continue;
      if (this.#hasEnded || part.hold.depth > 1) await part[Symbol.asyncDispose]();
      else this.#put(part);
    }
  }

  /** Refuses to wait for a lease that only the end of this transaction releases. @throws LockReentryError */
  checkIsFree(resource: string, { mode, permits }: ResolvedLockOptions): void {
    const kept = this.#kept.get(resource);
    if (!kept) return;
    const held = kept.reduce((sum, lease) => sum + (lease.permits ?? 0), 0);
    if (permits && held > 0) {
      if (held + permits.count <= permits.total) return;
      throw LockReentryError.waitingForOwnPermits(resource, held, permits.count, permits.total);
    }
    if (kept[0]!.mode === 'read' && mode === 'read') return;
    throw LockReentryError.keptByTransaction(resource, mode);
  }

  /** Releases its leases, the latest first. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    const leases = [...this.#kept.values()].flat().reverse();
    this.#kept.clear();
    await Promise.all(leases.map((lease) => lease[Symbol.asyncDispose]()));
  }

  /** Two calls of one transaction at the same time: the second would wait for the end of the transaction. */
  #claim(names: readonly string[]): readonly string[] {
    const outside = names.filter((name) => this.deps.context.hold(name) === undefined);
    const claimed = outside.find((name) => this.#claimed.has(name));
    if (claimed !== undefined) throw LockReentryError.keptByTransaction(claimed);
    for (const name of outside) this.#claimed.add(name);
    return outside;
  }

  async #acquire(
    names: readonly string[],
    options: ResolvedLockOptions,
    mayBeRefused: boolean,
  ): Promise<Acquired | null> {
    const kept: SingleLease[] = [];
    let lease: Acquired | null = null;
    try {
      for (const name of names) kept.push(...this.#take(name, options));
      const rest = names.filter((name) => !kept.some(({ resource }) => resource === name));
      if (rest.length > 0) {
        const asked = this.leases.acquire(rest, options);
        lease = await (mayBeRefused ? asked.catch(nullIfBusy) : asked);
      } else lease = kept.length === 1 ? kept[0]! : new CompositeLease(kept);
      const isMixed = lease !== null && kept.length > 0 && rest.length > 0;
      return isMixed ? new CompositeLease(inOrderOf(names, [...kept, ...partsOf(lease!)])) : lease;
    } finally {
      // The transaction may have ended during the wait.
      if (lease === null) for (const each of kept) await this.keep(each);
    }
  }

  /** Takes back a lease that the work may run under. @throws LeaseLostError, LockReentryError, InvalidLockOptionsError */
  #take(name: string, options: ResolvedLockOptions): SingleLease[] {
    const kept = this.#kept.get(name);
    if (!kept || this.deps.context.hold(name)) return [];
    const at = kept.findIndex((lease) => fits(lease, options));
    if (at < 0) {
      this.checkIsFree(name, options);
      return [];
    }
    kept[at]!.assertHeld();
    const [lease] = kept.splice(at, 1);
    if (kept.length === 0) this.#kept.delete(name);
    keptHolds.delete(lease!.hold);
    lease!.hold.storeLease.raiseMinHold(options.minHoldMs);
    return [lease!];
  }

  #put(lease: SingleLease): void {
    keptHolds.add(lease.hold);
    const kept = this.#kept.get(lease.resource);
    if (kept) kept.push(lease);
    else this.#kept.set(lease.resource, [lease]);
  }
}

function fits({ mode, permits }: SingleLease, wanted: ResolvedLockOptions): boolean {
  if (wanted.permits) return permits === wanted.permits.count;
  return mode === wanted.mode || (mode === 'write' && wanted.mode === 'read');
}

function inOrderOf(names: readonly string[], leases: SingleLease[]): SingleLease[] {
  return leases.sort((a, b) => names.indexOf(a.resource) - names.indexOf(b.resource));
}

function partsOf(lease: Acquired): readonly SingleLease[] {
  return lease instanceof CompositeLease ? lease.leases : [lease];
}

function noTransaction(transaction: unknown): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `transactions.current() must return an object that identifies the open transaction, or undefined, ` +
      `not ${describeValue(transaction)}.`,
    'transactions',
  );
}
