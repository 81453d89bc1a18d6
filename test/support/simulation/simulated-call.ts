import assert from 'node:assert/strict';
import { LockError } from '../../../lib/kernel/api/errors.js';
import type { SingleLease } from '../../../lib/kernel/lease/single-lease.js';
import type { ContentionHistory } from './contention-history.js';
import { type CallPlan, SEMAPHORE } from './contention-plan.js';
import type { SimulatedInstance } from './contention-simulation.js';

/** For the timers of a clock that ticks in whole milliseconds. */
const LATENESS_MS = 5;

/** One call, from its beginning to its end. */
export class SimulatedCall {
  readonly beganAt: number;
  state: 'waiting' | 'granted' | 'ended' = 'waiting';
  /** One for each resource. */
  leases: readonly SingleLease[] = [];

  constructor(
    readonly instance: SimulatedInstance,
    readonly plan: CallPlan,
    private readonly history: ContentionHistory,
  ) {
    this.beganAt = instance.clock.now();
  }

  /**
   * `true` if it is in the line of its process from the beginning, and learns about its grant immediately. `tryAcquire`
   * learns about it some promises later: after readers that were granted together with it.
   */
  get isInLine(): boolean {
    const { kind, resources } = this.plan;
    return (kind === 'acquire' || kind === 'using') && this.#waitMs !== 0 && resources.length === 1;
  }

  /** Returns true if it is in the same line as another call that comes after it. */
  isBefore({ plan, instance }: SimulatedCall): boolean {
    const isSame = this.instance === instance && this.plan.resources[0] === plan.resources[0];
    // A call that confuses a lock with a semaphore fails immediately, whatever the queue.
    const isMistaken = [this.plan, plan].some(({ permits, resources }) => permits && resources[0] !== SEMAPHORE);
    return isSame && this.isInLine && !isMistaken && (this.plan.permits === undefined) === (plan.permits === undefined);
  }

  granted(leases: readonly SingleLease[]): void {
    assert.equal(this.state, 'waiting', 'a call is granted once');
    this.state = 'granted';
    this.leases = leases;
    this.history.granted(this);
  }

  /** The leases once more. */
  entered(leases: readonly SingleLease[]): void {
    if (this.plan.permits) return;
    const tokens = (all: readonly SingleLease[]) => all.map(({ fencingToken }) => fencingToken);
    assert.deepEqual(tokens(leases), tokens(this.leases), 're-entry keeps the token');
  }

  end(error?: unknown): void {
    assert.notEqual(this.state, 'ended', 'a call ends once');
    this.state = 'ended';
    if (error !== undefined && !(error instanceof LockError)) this.history.fail(error);
  }

  /** The time by which it has exceeded its limit. */
  get overdueMs(): number {
    const { resources } = this.plan;
    const { attemptTimeoutMs = 1_000 } = this.plan.options;
    const limit = this.#waitMs === 0 ? attemptTimeoutMs * resources.length : this.#waitMs;
    return this.instance.clock.now() - this.beganAt - limit - this.cleanUpMs;
  }

  get #waitMs(): number {
    const { kind, options } = this.plan;
    return options.waitMs ?? (kind === 'tryAcquire' ? 0 : Infinity);
  }

  /** Of several resources one after another is asked for, and what was granted is released where one is not. */
  get cleanUpMs(): number {
    const { resources, options } = this.plan;
    return resources.length > 1 ? (options.attemptTimeoutMs ?? 1_000) + LATENESS_MS : 0;
  }
}
