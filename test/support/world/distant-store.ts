import type { Clock } from '../../../lib/kernel/util/clock.js';
import { ForwardedLocks } from '../../../lib/testing/fleet/test-lock-store.js';
import type { LockStore } from '../../../lib/kernel/store/lock-store.js';
import type { StoreListener } from '../../../lib/kernel/store/message-health.js';
import { LockStoreError, type StoreFailure } from '../../../lib/kernel/store/store-error.js';
import type { ServerHealth, StoreProbe } from '../../../lib/kernel/store/store-probe.js';
import type { ProcessClock } from '../simulation/simulated-process.js';

/** The distance of a store, and its faults. May change at any time. */
export interface Distance {
  /** The transit time of a command, a reply or a message. */
  latencyMs: () => number;
  /** Delays everything, both ways, and resumes where it stopped, like a stalled process. */
  isStopped?: boolean;
  /** Fails immediately. */
  isDown?: boolean;
  /** It refuses everything. */
  refusal?: string;
  /** The probability of a lost reply, and of a command that arrives twice. */
  replyLoss?: number;
  doubled?: number;
}

/** A store at a distance: every command, reply and message takes its time, each its own, so that they overtake one another. */
export class DistantStore extends ForwardedLocks implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  /** The number of commands sent to it. */
  sent = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly inner: LockStore,
    private readonly clock: Clock,
    private readonly distance: Distance,
    private readonly chance: () => number = () => 1,
    /** Delays replies until the process runs. */
    private readonly home: Pick<ProcessClock, 'whenAwake'> = { whenAwake: (read) => read() },
  ) {
    super(inner, (_verb, _args, execute) => this.#send(execute));
    this.instanceId = inner.instanceId;
    this.clientId = inner.clientId;
  }

  /** Delivers everything that was delayed. */
  resume(): void {
    this.distance.isStopped = false;
    for (const arrive of this.#waiting.splice(0)) arrive();
  }

  fenceOf(resource: string): string {
    return this.inner.fenceOf(resource);
  }

  trouble(): LockStoreError | undefined {
    return this.distance.isDown ? new LockStoreError('notExecuted', 'not connected') : undefined;
  }

  probe(): StoreProbe {
    const probe = this.inner.probe();
    const sentAt = this.clock.now();
    const answer = this.#send(() => probe.servers[0]!).then(
      ({ problems }): ServerHealth => ({ roundTripMs: this.clock.now() - sentAt, problems }),
      ({ message }: Error): ServerHealth => ({ problems: [{ code: 'AWAY', message, isFatal: true }] }),
    );
    return { ...probe, servers: [answer] };
  }

  listen(listener: StoreListener): void {
    this.inner.listen({
      granted: (grant) => this.#onTheWay(() => this.home.whenAwake(() => listener.granted(grant))),
      retained: (notice) => this.#onTheWay(() => this.home.whenAwake(() => listener.retained?.(notice))),
      freed: (message) => this.#onTheWay(() => this.home.whenAwake(() => listener.freed?.(message))),
      reconnected: () => listener.reconnected(),
    });
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  #send<T>(execute: () => Promise<T>): Promise<T> {
    const { distance, chance } = this;
    this.sent++;
    if (distance.isDown) return refused('notExecuted', 'not connected');
    if (distance.refusal !== undefined) return refused('refused', distance.refusal);
    const isDoubled = chance() < (distance.doubled ?? 0);
    const isLost = chance() < (distance.replyLoss ?? 0);
    return new Promise((resolve, reject) => {
      this.#onTheWay(() => {
        execute().then(
          (reply) => isLost || this.#onTheWay(() => this.home.whenAwake(() => resolve(reply))),
          (error: unknown) => this.#onTheWay(() => this.home.whenAwake(() => reject(error as Error))),
        );
      });
      if (isDoubled) this.#onTheWay(() => void execute().catch(() => {}));
    });
  }

  /** A server that is down when something arrives has lost it. */
  #onTheWay(arrive: () => void): void {
    this.clock.setTimer(() => {
      if (this.distance.isDown) return;
      if (this.distance.isStopped) this.#waiting.push(arrive);
      else arrive();
    }, this.distance.latencyMs());
  }
}

function refused(failure: StoreFailure, message: string): Promise<never> {
  return Promise.reject(new LockStoreError(failure, message));
}
