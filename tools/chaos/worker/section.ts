import { setTimeout as sleep } from 'node:timers/promises';
import { type Lease, LeaseLostError, LockError } from 'nestjs-redis-lock';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { AcquireInvoked, Ended } from '../history/entries.js';
import type { Bench } from './bench.js';

type Asked = Omit<AcquireInvoked, 'type' | 'op' | 'call' | 'at' | 'process' | 'leaseMs'> & {
  readonly leaseMs?: number;
};

/** One call to acquire, from its beginning to its end, told to the history. */
export class Section {
  readonly call: string;
  #until = 0;
  #unwatch: (() => void) | undefined;

  constructor(
    private readonly bench: Bench,
    private readonly asked: Asked,
  ) {
    this.call = bench.nextCall();
  }

  /** Takes the lease in whatever way. Gives nothing where there is none, whose reason the history then says. */
  async acquire(take: () => Promise<Lease | null>): Promise<Lease | undefined> {
    this.invoked();
    try {
      const lease = await take();
      if (lease) this.granted(lease);
      else this.#say({ type: 'fail', op: 'acquire', call: this.call, code: null });
      return lease ?? undefined;
    } catch (error) {
      this.refused(error);
      return undefined;
    }
  }

  invoked(): void {
    const { leaseMs } = this.bench.settings;
    this.#say({ type: 'invoke', op: 'acquire', call: this.call, leaseMs, ...this.asked });
  }

  granted(lease: Lease): void {
    const at = machineNow();
    this.#until = at + lease.remainingMs();
    const tokens = this.asked.resources.map((resource) => lease.fencingTokenOf(resource));
    this.#say({ type: 'ok', op: 'acquire', call: this.call, tokens, until: this.#until, at });
  }

  refused(error: unknown): void {
    const { call } = this;
    if (!(error instanceof LockError)) return this.#crash(error, 'acquire');
    const { code, message: why } = error;
    const hasCause = error.cause !== undefined;
    this.#say({ type: code === 'LOCK_UNAVAILABLE' ? 'unknown' : 'fail', op: 'acquire', call, code, why, hasCause });
  }

  /** Records a lease that ended by itself. */
  ended(): void {
    this.#unwatch?.();
  }

  /** Wanted no more before it was granted. */
  withdrawn(): void {
    this.#say({ type: 'fail', op: 'acquire', call: this.call, code: 'LOCK_ABORTED' });
  }

  /**
   * Holds the lease for a while, looks at it now and then, and writes to the witness at the end: carelessly, also when the
   * lease is lost by then.
   */
  async hold(lease: Lease, forMs: number, writes: boolean): Promise<void> {
    const { bench, call } = this;
    this.watch(lease);
    const { witness, settings } = bench;
    const read = new Map<string, number>();
    if (writes) for (const resource of lease.resources) read.set(resource, (await witness?.enter(resource, call)) ?? 0);
    const endAt = machineNow() + forMs;
    for (let left = forMs; left > 0; left = endAt - machineNow()) {
      await sleep(Math.min(left, settings.leaseMs / 6));
      this.look(lease);
      if (bench.isOver) break;
    }
    if (writes && witness) {
      for (const resource of lease.resources) {
        const token = lease.fencingTokenOf(resource);
        const accepted = await witness.write(resource, call, token, read.get(resource)!);
        this.#say({ type: 'wrote', call, resource, token, accepted, heldAfter: lease.isHeld() });
      }
    }
  }

  /** Until its end: looks at the deadline whenever the loop runs, and says when the lease is lost. */
  watch(lease: Lease): void {
    if (this.#unwatch) return;
    const { signal } = lease;
    const refresh = (): void => void this.#refresh(lease);
    this.bench.looks.add(refresh);
    const lost = (): void => {
      const { reason } = signal as { reason: unknown };
      if (!(reason instanceof LeaseLostError)) return;
      const { loopRanAt } = this.bench;
      this.#say({ type: 'lost', call: this.call, reason: reason.reason, until: this.#until, loopRanAt });
    };
    if (signal.aborted) lost();
    else signal.addEventListener('abort', lost, { once: true });
    this.#unwatch = () => {
      this.bench.looks.delete(refresh);
      signal.removeEventListener('abort', lost);
    };
  }

  look(lease: Lease): void {
    const wasAborted = lease.signal.aborted;
    const { at, until, held } = this.#refresh(lease);
    // Read before a lease that is held, and after one that is not: it may end, or the process stall, in between.
    const aborted = held ? wasAborted : lease.signal.aborted;
    this.#say({ type: 'look', call: this.call, held, aborted, until, at });
  }

  #refresh(lease: Lease): { at: number; until: number; held: boolean } {
    // In this order: a lease that is held has a deadline that is still to come.
    const at = machineNow();
    const until = at + lease.remainingMs();
    const held = lease.isHeld();
    if (held) this.#until = until;
    return { at, until, held };
  }

  /** Ends the hold, its exclusiveness, or a part of its permits. @param left the remaining permits */
  async end<T>(op: Ended['op'], act: () => Promise<T>, left?: number): Promise<T | undefined> {
    const { call } = this;
    if (op === 'release') this.#unwatch?.();
    this.#say({ type: 'invoke', op, call, ...(left !== undefined && { left }) });
    try {
      const result = await act();
      this.#say({ type: 'ok', op, call });
      return result;
    } catch (error) {
      if (!(error instanceof LockError)) this.#crash(error, op);
      const { code, message: why } =
        error instanceof LockError ? error : { code: 'NOT_OURS', message: 'see the crash' };
      this.#say({ type: code === 'LOCK_UNAVAILABLE' ? 'unknown' : 'fail', op, call, code, why });
      return undefined;
    }
  }

  /** Releases with `using`, which reports the same as `release`. */
  releasing(): void {
    this.#unwatch?.();
    this.#say({ type: 'invoke', op: 'release', call: this.call });
  }

  released(): void {
    this.#say({ type: 'ok', op: 'release', call: this.call });
  }

  #crash(error: unknown, during: string): void {
    const text = error instanceof Error ? error.stack : String(error);
    this.#say({ type: 'crash', error: `${during} of ${this.asked.resources.join(', ')}: ${text}` });
  }

  get #say(): Bench['log']['say'] {
    return this.bench.log.say.bind(this.bench.log);
  }
}
