import type {
  AcquireReply,
  KeepReply,
  KeptPlace,
  LockOwner,
  LockStore,
  Queueing,
  Retention,
  RotateReply,
  Transfer,
} from '../../core/store/lock-store.js';
import type { GrantListener, Hearing } from '../../core/store/hearing.js';
import type { LockState } from '../../core/store/lock-state.js';
import type { LockStoreError } from '../../core/store/store-error.js';
import type { StoreProbe } from '../../core/store/store-probe.js';
import type { FreedListener, Watcher, WatchReply } from '../../core/store/watch-store.js';
import type { CommandPath, TestCommand, Verb } from './commands.js';

/** The lock store of one instance of a fleet: each command and each message passes the path of the instance. */
export class TestLockStore implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  /** Set where the store behind has it. */
  keepPlaces?: (places: readonly KeptPlace[], sentAt: number) => Promise<readonly KeepReply[]>;
  hearing?: Hearing;

  constructor(
    protected readonly inner: LockStore,
    private readonly path: CommandPath,
  ) {
    this.instanceId = inner.instanceId;
    this.clientId = inner.clientId;
    this.forwardKeeping();
  }

  /** From now on, places are kept in one command, whose resource is the list of their names. */
  protected forwardKeeping(): void {
    const { inner, path } = this;
    const { keepPlaces, hearing } = inner;
    if (!keepPlaces || !hearing) return;
    this.keepPlaces = (places, sentAt) => {
      const resource = places.map(({ waiter }) => waiter.resource).join();
      const { waiter, leaseMs } = places[0]!;
      return this.#send('keep', { resource, id: waiter.id }, { leaseMs }, () => keepPlaces.call(inner, places, sentAt));
    };
    this.hearing = {
      get quietMs() {
        return path.trouble() ? 0 : hearing.quietMs;
      },
      get silentSince() {
        return hearing.silentSince;
      },
      rely: (isRelied) => hearing.rely(isRelied),
    };
  }

  acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    return this.#send('acquire', waiter, { leaseMs, queueing: queueing !== undefined }, () =>
      this.inner.acquire(waiter, leaseMs, queueing),
    );
  }

  rotate(owner: LockOwner, waiter: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    return this.#send('rotate', owner, { leaseMs, queueing: true, next: waiter.id }, () =>
      this.inner.rotate(owner, waiter, leaseMs, queueing),
    );
  }

  setDepth(owner: LockOwner, depth: number, leaseMs: number): Promise<boolean> {
    return this.#send('setDepth', owner, { depth, leaseMs }, () => this.inner.setDepth(owner, depth, leaseMs));
  }

  renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean> {
    return this.#send('renew', owner, { leaseMs }, () => this.inner.renew(owner, leaseMs, exactly));
  }

  release(owner: LockOwner): Promise<boolean> {
    return this.#send('release', owner, {}, () => this.inner.release(owner));
  }

  retain(owner: LockOwner, retention: Retention): Promise<boolean> {
    return this.#send('retain', owner, { retention }, () => this.inner.retain(owner, retention));
  }

  label(owner: LockOwner, label: string | undefined): Promise<boolean> {
    return this.#send('label', owner, { label }, () => this.inner.label(owner, label));
  }

  verify(owner: LockOwner): Promise<boolean> {
    return this.#send('verify', owner, {}, () => this.inner.verify(owner));
  }

  downgrade(owner: LockOwner, leaseMs: number): Promise<boolean> {
    return this.#send('downgrade', owner, { leaseMs }, () => this.inner.downgrade(owner, leaseMs));
  }

  raiseToken(owner: LockOwner, fencingToken: number): Promise<boolean> {
    return this.#send('raiseToken', owner, {}, () => this.inner.raiseToken(owner, fencingToken));
  }

  transfer(owner: LockOwner, transfer: Transfer): Promise<number | null> {
    return this.#send('transfer', owner, { leaseMs: transfer.leaseMs, next: transfer.to }, () =>
      this.inner.transfer(owner, transfer),
    );
  }

  lowerPermits(owner: LockOwner, count: number): Promise<boolean> {
    return this.#send('lowerPermits', owner, { count }, () => this.inner.lowerPermits(owner, count));
  }

  resize(resource: string, total: number): Promise<boolean> {
    return this.#send('resize', { resource }, {}, () => this.inner.resize(resource, total));
  }

  inspect(resource: string): Promise<LockState> {
    return this.#send('inspect', { resource }, {}, () => this.inner.inspect(resource));
  }

  list(prefix: string, limit: number): Promise<string[]> {
    return this.#send('list', { resource: prefix }, {}, () => this.inner.list(prefix, limit));
  }

  forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    return this.#send('forceRelease', { resource }, {}, () => this.inner.forceRelease(resource, fencingToken));
  }

  watch(watcher: Watcher, watchMs: number): Promise<WatchReply> {
    return this.#send('watch', watcher, { leaseMs: watchMs }, () => this.inner.watch(watcher, watchMs));
  }

  listen(listener: GrantListener): void {
    const { path } = this;
    path.onReconnected(() => listener.reconnected());
    path.onDisconnected(() => listener.unproven?.());
    this.inner.listen({
      granted: (grant) => path.deliver(grant.resource, () => listener.granted(grant)),
      retained: (notice) => path.deliver(notice.resource, () => listener.retained?.(notice)),
      unproven: () => listener.unproven?.(),
      reconnected: () => listener.reconnected(),
    });
  }

  listenForFreed(listener: FreedListener): void {
    const { path } = this;
    path.onReconnected(() => listener.reconnected());
    this.inner.listenForFreed({
      freed: (message) => path.deliver(message.resource, () => listener.freed(message)),
      reconnected: () => listener.reconnected(),
    });
  }

  // Properties, so that a test can replace what a store knows without a command.
  fenceOf = (resource: string): string => this.inner.fenceOf(resource);

  trouble = (resource: string): LockStoreError | undefined => this.path.trouble() ?? this.inner.trouble(resource);

  probe = (): StoreProbe => {
    const trouble = this.path.trouble();
    const probe = this.inner.probe();
    if (!trouble) return probe;
    const problem = { code: 'ECONNREFUSED', message: 'Redis cannot be reached.', isFatal: true };
    return { ...probe, servers: [Promise.resolve({ problems: [problem] })] };
  };

  async close(): Promise<void> {
    await this.inner.close();
    this.path.closed();
  }

  #send<T>(
    verb: Verb,
    { resource, id: owner }: { readonly resource: string; readonly id?: string },
    details: Partial<TestCommand>,
    execute: () => Promise<T>,
  ): Promise<T> {
    return this.path.send({ verb, resource, owner, ...details }, execute);
  }
}
