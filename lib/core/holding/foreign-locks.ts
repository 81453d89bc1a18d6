import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { ForeignClient, ForeignContext, ForeignLock, ForeignRun } from '../api/foreign-lock.js';
import { type Answer, askUntil, retryUnexecuted } from '../store/ask.js';
import type { Alarms } from '../util/alarms.js';
import { inRootContext } from '../util/async-contexts.js';
import { backoff } from '../util/backoff.js';
import type { Clock } from '../util/clock.js';
import type { Random } from '../util/random.js';
import { ForeignHold } from './foreign-hold.js';

/** The first and the longest pause between two tries. */
const PAUSE_MS = { first: 20, longest: 500 };

/** A foreign lock that a call takes beside its own, and its key there. */
export interface AlsoLock {
  readonly lock: ForeignLock;
  readonly key: string;
  /** Whether the call fails as soon as the lock is found to be busy. @default where `waitMs` is 0 */
  readonly isBusyFinal?: boolean;
  /** Whether an old process is waited for as long as it has the lock. `waitMs` then counts from the last answer. */
  readonly isPatient?: boolean;
  /** The run of a singleton job that takes it. */
  readonly run?: { readonly resource: string; readonly token: number };
}

/** How long the lock may live, and how long one command may take. */
interface Limits {
  readonly leaseMs: number;
  readonly attemptTimeoutMs: number;
}

/** The foreign lock of a call; `undefined` where it has none. @throws what the user's function throws */
export function alsoLockOf(lock: ForeignLock | undefined, resource: string): AlsoLock | undefined {
  if (lock === undefined) return undefined;
  const key = lock.keyOf(resource);
  return key === undefined ? undefined : { lock, key };
}

/** The locks of other libraries that this client uses: what it has opened, and the releases that are not answered yet. */
export class ForeignLocks {
  readonly #clients = new Map<ForeignLock, ForeignClient>();
  readonly #pending = new Set<Promise<unknown>>();
  readonly #stop = new AbortController();

  constructor(
    private readonly deps: {
      readonly clock: Clock;
      readonly random: Random;
      readonly alarms: Alarms;
      readonly store: { readonly instanceId: string; readonly location?: string };
    },
    private readonly open: (lock: ForeignLock, context: ForeignContext) => ForeignClient,
  ) {
    setMaxListeners(0, this.#stop.signal);
  }

  /** How many releases are not answered yet. */
  get size(): number {
    return this.#pending.size;
  }

  /** A new claim, with an owner value of its own. Sends nothing. */
  claim({ lock, key, run }: AlsoLock): ForeignHold {
    const { clock, random, store } = this.deps;
    let client = this.#clients.get(lock);
    if (client === undefined) {
      const context = { instanceId: store.instanceId, now: () => clock.now(), randomId: () => random.id() };
      // Its connections must not keep the data of the caller.
      client = inRootContext(() => this.open(lock, context));
      this.#clients.set(lock, client);
    }
    const claim = client.claim(key, run && { name: this.#nameOf(run.resource), token: run.token });
    return new ForeignHold(lock, key, claim, clock);
  }

  /** A digest: any program that may read the keys of the old code sees it. */
  #nameOf(resource: string): ForeignRun['name'] {
    const names = JSON.stringify([this.deps.store.location ?? '', resource]);
    return `nestjs-redis-lock:${createHash('sha256').update(names).digest('hex').slice(0, 16)}:`;
  }

  /**
   * Releases it. Without an answer in time, the release is sent again in the background, until it is answered or the
   * lock has expired by itself. Never rejects.
   */
  async release(foreign: ForeignHold, limits: Limits, minHoldMs: number, patienceMs: number): Promise<Answer<boolean>> {
    const send = (): Promise<boolean> => foreign.release(minHoldMs);
    const answer = await retryUnexecuted(this.deps.alarms, send(), patienceMs, send);
    if (answer.outcome !== 'answered') this.withdraw(foreign, limits, minHoldMs);
    return answer;
  }

  /** Releases what may be held, or may still be granted, in the background. */
  withdraw(foreign: ForeignHold, { leaseMs, attemptTimeoutMs }: Limits, minHoldMs = 0): void {
    const { alarms, clock } = this.deps;
    const work = inRootContext(() =>
      askUntil(alarms, clock, {
        send: () => foreign.release(minHoldMs),
        timeoutMs: attemptTimeoutMs,
        giveUpAt: clock.now() + leaseMs,
        pauseMs: (failures) => backoff(PAUSE_MS, failures),
        signal: this.#stop.signal,
      }),
    );
    const ended = work.finally(() => this.#pending.delete(ended));
    this.#pending.add(ended);
  }

  /** Waits for all releases, but at most `patienceMs`, and closes what was opened. The remaining locks expire. */
  async close(patienceMs: number): Promise<void> {
    if (this.#clients.size === 0) return;
    const timer = this.deps.clock.setTimer(() => this.#stop.abort(), patienceMs);
    await Promise.all(this.#pending);
    timer.cancel();
    this.#stop.abort();
    await Promise.allSettled([...this.#clients.values()].map(async (client) => client.close()));
  }
}
