import type { KeepReply, KeptPlace, LockOwner, LockStore } from '../../core/store/lock-store.js';
import type { Hearing, StoreListener } from '../../core/store/hearing.js';
import type { LockStoreError } from '../../core/store/store-error.js';
import type { StoreProbe } from '../../core/store/store-probe.js';
import type { CommandPath } from './commands.js';
import { ForwardedLocks, type LockCommand, sendBy, type Told } from './forwarded.js';

const by = ({ resource, id: owner }: Pick<LockOwner, 'resource' | 'id'>) => ({ resource, owner });
const about = (resource: string) => ({ resource });

/** What each command tells of itself. */
const TOLD: Told<LockStore, LockCommand> = {
  acquire: (waiter, leaseMs, queueing) => ({ ...by(waiter), leaseMs, queueing: queueing !== undefined }),
  rotate: (owner, waiter, leaseMs) => ({ ...by(owner), leaseMs, queueing: true, next: waiter.id }),
  setDepth: (owner, depth, leaseMs) => ({ ...by(owner), depth, leaseMs }),
  renew: (owner, leaseMs) => ({ ...by(owner), leaseMs }),
  release: by,
  retain: (owner, retention) => ({ ...by(owner), retention }),
  label: (owner, label) => ({ ...by(owner), label }),
  verify: by,
  downgrade: (owner, leaseMs) => ({ ...by(owner), leaseMs }),
  raiseToken: by,
  transfer: (owner, { leaseMs, to }) => ({ ...by(owner), leaseMs, next: to }),
  lowerPermits: (owner, count) => ({ ...by(owner), count }),
  resize: about,
  inspect: about,
  list: about,
  forceRelease: about,
  watch: (watcher, leaseMs) => ({ ...by(watcher), leaseMs }),
};

/** The lock store of one instance of a fleet: each command and each message passes the path of the instance. */
export class TestLockStore extends ForwardedLocks implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  /** Set where the store behind has it. */
  keepPlaces?: (places: readonly KeptPlace[], sentAt: number) => Promise<readonly KeepReply[]>;
  hearing?: Hearing;

  constructor(
    protected readonly inner: LockStore,
    private readonly path: CommandPath,
  ) {
    super(inner, sendBy(path, TOLD));
    this.instanceId = inner.instanceId;
    this.clientId = inner.clientId;
    this.#forwardKeeping();
  }

  /** From now on, places are kept in one command, whose resource is the list of their names. */
  #forwardKeeping(): void {
    const { inner, path } = this;
    const { keepPlaces, hearing } = inner;
    if (!keepPlaces || !hearing) return;
    this.keepPlaces = (places, sentAt) => {
      const resource = places.map(({ waiter }) => waiter.resource).join();
      const { waiter, leaseMs } = places[0]!;
      const command = { verb: 'keep', resource, owner: waiter.id, leaseMs } as const;
      return path.send(command, () => keepPlaces.call(inner, places, sentAt));
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

  listen(listener: StoreListener): void {
    const { path } = this;
    path.onReconnected(() => listener.reconnected());
    path.onDisconnected(() => listener.unproven?.());
    this.inner.listen({
      granted: (grant) => path.deliver(grant.resource, () => listener.granted(grant)),
      retained: (notice) => path.deliver(notice.resource, () => listener.retained?.(notice)),
      freed: (message) => path.deliver(message.resource, () => listener.freed?.(message)),
      opened: (name, count) => path.deliver(name, () => listener.opened?.(name, count)),
      unproven: () => listener.unproven?.(),
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
}
