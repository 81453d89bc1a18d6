import type { StoreProbe } from '../../kernel/store/store-probe.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import type { RollCalls, MessageHealth, StoreListener } from '../../kernel/store/message-health.js';
import {
  type CommandPath,
  type Describe,
  forwarded,
  type LockCommand,
  type Send,
  sendBy,
  throughPath,
} from './commands.js';
import type { LockOwner, LockStore, KeptPlace, KeepReply } from '../../kernel/store/lock-store.js';

export const by = ({ resource, id: owner }: Pick<LockOwner, 'resource' | 'id'>) => ({ resource, owner });

const about = (resource: string) => ({ resource });

/** Descriptions of the commands, from their arguments. */
const TOLD: Describe<LockStore, LockCommand> = {
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
  lowerPermits: (owner, count) => ({ ...by(owner), count }),
  resize: about,
  inspect: about,
  list: about,
  forceRelease: about,
  watch: (watcher, leaseMs) => ({ ...by(watcher), leaseMs }),
};

export const LOCK_COMMANDS = Object.keys(TOLD) as LockCommand[];

/** The commands of a lock store, as methods that send each to the store behind. */
export const ForwardedLocks = class {
  constructor(inner: LockStore, send: Send<LockCommand>) {
    Object.assign(this, forwarded(inner, LOCK_COMMANDS, send));
  }
} as new (inner: LockStore, send: Send<LockCommand>) => Pick<LockStore, LockCommand>;

const ROLL = () => ({ verb: 'roll', resource: '' }) as const;

const TOLD_OF_ROLL_CALLS: Describe<RollCalls, keyof RollCalls> = {
  call: ROLL,
  answer: ROLL,
  leave: ROLL,
  reports: ROLL,
  count: ROLL,
  read: ROLL,
  connected: ROLL,
};

/** The lock store of one instance of a fleet: each command and each message takes the path of the instance. */
export class TestLockStore extends ForwardedLocks implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  /** Only set if the store behind has it. */
  keepPlaces?: (places: readonly KeptPlace[], sentAt: number) => Promise<readonly KeepReply[]>;
  hearing?: MessageHealth;
  readonly rollCalls?: RollCalls;

  constructor(
    protected readonly inner: LockStore,
    private readonly path: CommandPath,
  ) {
    super(inner, sendBy(path, TOLD));
    this.instanceId = inner.instanceId;
    this.clientId = inner.clientId;
    if (inner.rollCalls) this.rollCalls = throughPath(inner.rollCalls, TOLD_OF_ROLL_CALLS, path);
    this.#forwardKeeping();
  }

  /** Keeps places in one command from now on, whose resource is the list of their names. */
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
      get trustedForMs() {
        return path.trouble() ? 0 : hearing.trustedForMs;
      },
      get silentSince() {
        return hearing.silentSince;
      },
      setNeeded: (isNeeded) => hearing.setNeeded(isNeeded),
    };
  }

  listen(listener: StoreListener): void {
    const { path } = this;
    path.onReconnected(() => listener.reconnected());
    path.onDisconnected(() => listener.deliveryUncertain?.());
    this.inner.listen({
      granted: (grant) => path.deliver(grant.resource, () => listener.granted(grant)),
      called: (call) => path.deliver('', () => listener.called?.(call)),
      asked: (request) => path.deliver(request.resource, () => listener.asked?.(request)),
      retained: (notice) => path.deliver(notice.resource, () => listener.retained?.(notice)),
      freed: (message) => path.deliver(message.resource, () => listener.freed?.(message)),
      deliveryUncertain: () => listener.deliveryUncertain?.(),
      reconnected: () => listener.reconnected(),
    });
  }

  // Properties, so that a test can replace knowledge that a store has without a command.
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
