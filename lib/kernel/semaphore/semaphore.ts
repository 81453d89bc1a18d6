import { mismatched, nullIfBusy } from '../acquiring/acquire-errors.js';
import type { SingleLease } from '../lease/single-lease.js';
import type { KernelParts } from '../lease/kernel-parts.js';
import type { LeaseFactory } from '../lease/lease-factory.js';
import type { Origin } from '../util/call-site.js';
import { type Lease, type LockedWork, optionsAndWork, type TryUsingResult } from '../api/lease.js';
import { fillLockOptions, type ResolvedLockOptions, type PermitRequest } from '../api/lock-options.js';
import { ask } from '../store/ask.js';
import type { LockState } from '../store/lock-state.js';
import { checkPermitOptions, checkPermits, type PermitOptions } from './semaphore-options.js';
import { quote } from '../util/quoted.js';

/**
 * Limits work to `permits` at once, across all instances.
 *
 * ```ts
 * const exports = locks.semaphore('exports', { permits: 3 });
 * await exports.using(() => exportOrders());
 * ```
 *
 * Permits have leases: if a process dies, its permits are free once their leases expire. First come, first served:
 * callers that want few permits do not overtake a caller that wants many.
 */
export class Semaphore {
  #total: number;
  #isResized = false;

  /** @internal */
  constructor(
    readonly resource: string,
    total: number,
    private readonly deps: KernelParts,
    private readonly leases: LeaseFactory,
  ) {
    this.#total = total;
  }

  /** The total number of permits, which this object passes with each call. */
  get permits(): number {
    return this.#total;
  }

  /**
   * Acquires one permit, or `count` of them, waiting up to `waitMs`. The caller must release the lease.
   *
   * @throws LockModeMismatchError if the resource is in use as a lock, or other callers pass a different number of
   *   permits
   * @throws LockReentryError if this async context already holds permits, and would wait for itself
   * @throws the other errors of `locks.acquire`
   */
  acquire(options?: PermitOptions): Promise<Lease> {
    return this.deps.leaks.withOrigin(this.acquire, (origin) => this.#acquire(options, origin));
  }

  /**
   * Like {@link acquire}, but resolves to `null` if too few permits are free. It only waits for them if you pass
   * `waitMs`: the default is 0 here, whatever the module sets. See `locks.tryAcquire`.
   *
   * @throws the errors of {@link acquire}, except `LockBusyError`, `LockTimeoutError` and `LockQueueFullError`
   */
  tryAcquire(options?: PermitOptions): Promise<Lease | null> {
    return this.deps.leaks.withOrigin(this.tryAcquire, (origin) => this.#tryAcquire(options, origin));
  }

  /**
   * Acquires the permits, runs the work, and releases them. Errors that the work throws are passed on unchanged.
   *
   * @throws LeaseLostError if the lease is lost before the work settles, as in `locks.using`; see `onLost`
   * @throws the errors of {@link acquire}; then the work was not called
   */
  using<T>(work: LockedWork<T>): Promise<T>;
  using<T>(options: PermitOptions | undefined, work: LockedWork<T>): Promise<T>;
  async using<T>(optionsOrWork: PermitOptions | LockedWork<T> | undefined, maybeWork?: LockedWork<T>): Promise<T> {
    const [options, work] = optionsAndWork(optionsOrWork, maybeWork, 'using');
    const transaction = this.leases.transactions?.current();
    if (transaction) return (await transaction.using([this.resource], this.#resolve(options), false, work)).value!;
    return await this.leases.runUnder(await this.#acquire(options), work, options?.onLost);
  }

  /**
   * Like {@link using}, but resolves to `{ ran: false }` without calling the work if too few permits are free, and
   * otherwise to `{ ran: true, value }`. Waits like {@link tryAcquire}.
   *
   * @throws LeaseLostError if the lease is lost before the work settles, as in `locks.using`; see `onLost`
   * @throws the errors of {@link tryAcquire}; then the work was not called
   */
  tryUsing<T>(work: LockedWork<T>): Promise<TryUsingResult<T>>;
  tryUsing<T>(options: PermitOptions | undefined, work: LockedWork<T>): Promise<TryUsingResult<T>>;
  async tryUsing<T>(
    optionsOrWork: PermitOptions | LockedWork<T> | undefined,
    maybeWork?: LockedWork<T>,
  ): Promise<TryUsingResult<T>> {
    const [options, work] = optionsAndWork(optionsOrWork, maybeWork, 'tryUsing');
    const transaction = this.leases.transactions?.current();
    if (transaction) {
      return transaction.using([this.resource], this.#resolve(options, options?.waitMs ?? 0), true, work);
    }
    const lease = await this.#tryAcquire(options);
    return lease ? { ran: true, value: await this.leases.runUnder(lease, work, options?.onLost) } : { ran: false };
  }

  /**
   * Returns the number of free permits at this moment, from Redis. Other callers may be waiting for them.
   *
   * @throws LockUnavailableError if Redis is unreachable or rejects the command
   */
  async available(): Promise<number> {
    const { mode, permits } = await this.#inspect();
    if (mode !== null && permits === undefined) throw this.#mismatch(mode);
    return permits?.available ?? this.#total;
  }

  /**
   * Sets the number of permits for all callers, whatever number they pass, for as long as any permit is held. This
   * object keeps the new number. If you raise it, waiters get the new permits at once. If you lower it, no holder loses
   * a permit.
   *
   * @throws LockModeMismatchError if the resource is in use as a lock
   * @throws LockUnavailableError if Redis is unreachable or rejects the command
   */
  async resize(permits: number): Promise<void> {
    checkPermits(permits, `semaphore(${quote(this.resource)})`);
    const { resource, deps } = this;
    if (!(await ask(deps, () => deps.store.resize(resource, permits), 'resize', resource))) {
      const { mode } = await this.#inspect();
      throw this.#mismatch(mode ?? 'exclusive');
    }
    this.#total = permits;
    this.#isResized = true;
  }

  #inspect(): Promise<LockState> {
    const { resource, deps } = this;
    return ask(deps, () => deps.store.inspect(resource), 'inspect', resource);
  }

  async #acquire(options: PermitOptions | undefined, origin?: Origin, waitMs?: number): Promise<SingleLease> {
    return this.leases.acquireOne(this.resource, this.#resolve(options, waitMs), origin);
  }

  #resolve(options: PermitOptions | undefined, waitMs?: number): ResolvedLockOptions {
    // In JavaScript, null is no options, as in `locks.acquire`.
    const given = options ?? undefined;
    const count = checkPermitOptions(given, this.#total);
    const resolved = fillLockOptions(given, this.deps.defaults, this.#request(count));
    return waitMs === undefined ? resolved : { ...resolved, waitMs };
  }

  async #tryAcquire(options: PermitOptions | undefined, origin?: Origin): Promise<SingleLease | null> {
    try {
      return await this.#acquire(options, origin, options?.waitMs ?? 0);
    } catch (error) {
      return nullIfBusy(error);
    }
  }

  #request(count: number): PermitRequest {
    return { count, total: this.#total, isResized: this.#isResized };
  }

  #mismatch(mode: NonNullable<LockState['mode']>) {
    return mismatched(this.resource, { mode: 'semaphore', permits: this.#request(1) }, { mode, total: 1 });
  }
}
