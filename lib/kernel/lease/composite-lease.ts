import { BaseLease, type SingleLease } from './single-lease.js';
import { notOfSemaphore } from './changes.js';
import { lastingController } from '../util/signals.js';
import type { Lease } from '../api/lease.js';
import { notAmong, severalOrders } from '../api/resource.js';

/** The lease of a call: of one resource, or of several at once. */
export type Acquired = SingleLease | CompositeLease;

/** The lease of several resources. It is lost as soon as one of them is lost. */
export class CompositeLease extends BaseLease implements Lease {
  readonly resource: string;
  readonly resources: readonly string[];
  #controller: AbortController | undefined;

  constructor(
    /** One lease for each resource, sorted by resource, each with its own fencing token. */
    readonly leases: readonly SingleLease[],
  ) {
    super();
    this.resources = leases.map(({ resource }) => resource);
    this.resource = this.resources.join(', ');
  }

  get mode() {
    return this.leases[0]!.mode;
  }

  /** @throws InvalidLockOptionsError of several orders: the largest token would not order all of them */
  get fencingToken(): number {
    const { fence } = this.leases[0]!;
    if (this.leases.some((lease) => lease.fence !== fence)) throw severalOrders(this.resources);
    return Math.max(...this.leases.map(({ fencingToken }) => fencingToken));
  }

  fencingTokenOf(resource: string): number {
    const lease = this.leases.find((part) => part.resource === resource);
    if (!lease) throw notAmong(this.resources, resource);
    return lease.fencingToken;
  }

  protected override get printedToken() {
    return { fencingTokens: Object.fromEntries(this.leases.map((lease) => [lease.resource, lease.fencingToken])) };
  }

  get holds() {
    return this.leases.map(({ hold }) => hold);
  }

  get isReleased(): boolean {
    return this.leases.every((lease) => lease.isReleased);
  }

  get signal(): AbortSignal {
    const controller = (this.#controller ??= this.#createController());
    // Reading the signal of a part also notices a deadline that has just passed.
    for (const { signal } of this.leases)
      if (signal.aborted && !controller.signal.aborted) controller.abort(signal.reason);
    return controller.signal;
  }

  isHeld(): boolean {
    return this.leases.every((lease) => lease.isHeld());
  }

  remainingMs(): number {
    return Math.min(...this.leases.map((lease) => lease.remainingMs()));
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  async verify(): Promise<boolean> {
    const answers = await Promise.all(this.leases.map((lease) => lease.verify()));
    return answers.every(Boolean);
  }

  async extend(leaseMs?: number): Promise<void> {
    await Promise.all(this.leases.map((lease) => lease.extend(leaseMs)));
  }

  async downgrade(): Promise<void> {
    for (const lease of this.leases) lease.checkMayDowngrade();
    await Promise.all(this.leases.map((lease) => lease.downgrade()));
  }

  /** It has none: a semaphore is acquired alone. */
  get permits(): undefined {
    return undefined;
  }

  async releasePermits(): Promise<void> {
    throw notOfSemaphore(this.mode);
  }

  async release(): Promise<void> {
    await this.#endAll((lease) => lease.release());
  }

  bind(): this {
    for (const lease of this.leases) lease.bind();
    return this;
  }

  async end(): Promise<void> {
    await this.#endAll((lease) => lease.end());
  }

  /** Ends every part, even after a failure, and then throws the first error. */
  async #endAll(end: (lease: SingleLease) => Promise<void>): Promise<void> {
    const results = await Promise.allSettled(this.leases.toReversed().map(end));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  #createController(): AbortController {
    const controller = lastingController();
    for (const { signal } of this.leases) {
      signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
    }
    return controller;
  }
}
