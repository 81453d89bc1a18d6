import type { JobStore } from '../../features/jobs/core/job-store.js';
import type { ResultStore } from '../../features/once/core/result-store.js';
import type { KeepReply, KeptPlace, LockOwner, LockStore } from '../../kernel/store/lock-store.js';
import type { LockStores } from '../../kernel/lock-stores.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { type Clock, type Random, SYSTEM_CLOCK, type Timer } from '../../kernel/util/clock.js';
import { type MemoryLockStore, memoryStores } from '../../memory/memory-lock-store.js';
import type { MemoryServer } from '../../memory/memory-server.js';
import {
  type CommandPath,
  ForwardedLocks,
  type Gate,
  type LockCommand,
  sendBy,
  type TestCommand,
  throughPath,
  type Describe,
} from './commands.js';
import type { PlannedFailure } from './failures.js';
import type { MessageHealth, RollCalls, StoreListener } from '../../kernel/store/message-health.js';
import type { StoreProbe } from '../../kernel/store/store-probe.js';

/** The fleet, from the side of an instance. */
export interface Surroundings {
  readonly clock: Clock;
  readonly isDown: boolean;
  /** Called for every command. */
  sent(command: TestCommand): void;
  /** Called when the application has closed. */
  left(instance: TestInstance): void;
}

/** Turns of the microtask queue in which a reply reaches its caller. */
const TURNS_OF_AN_ANSWER = 20;

/** One lock service of one application, on the server of its fleet. */
export class TestInstance implements CommandPath {
  readonly clock: InstanceClock;
  readonly stores: LockStores;
  /** Called for every command and message, if it is set. */
  gate: Gate | undefined;
  /** The lock service that its application injects. Undefined for a client that acts as another application. */
  injected: object | undefined;
  /** The commands that have no reply yet. */
  readonly underWay = new Set<TestCommand>();
  /** The store behind the path. */
  readonly #inner: MemoryLockStore;
  readonly #failures: PlannedFailure[] = [];
  readonly #reconnected: (() => void)[] = [];
  readonly #disconnected: (() => void)[] = [];

  constructor(
    readonly instanceId: string,
    readonly service: string,
    readonly server: MemoryServer,
    private readonly fleet: Surroundings,
    random: Random,
  ) {
    this.clock = new InstanceClock(fleet.clock);
    const { locks, jobs, results } = memoryStores({ instanceId, server });
    this.#inner = locks;
    this.stores = {
      locks: new TestLockStore(locks, this),
      jobs: throughPath(jobs, OF_JOBS, this),
      results: throughPath(results, OF_RESULTS, this),
      clock: this.clock,
      random,
    };
  }

  /** Fails the next command of a kind, after the failures that were planned earlier. */
  fail(failure: PlannedFailure): void {
    this.#failures.push(failure);
  }

  /** The planned failures that have hit no command. */
  get unmetFailures(): readonly PlannedFailure[] {
    return this.#failures;
  }

  /** Removes a lease of this instance from Redis, which grants the resource to the next waiter. */
  async drop(owner: LockOwner): Promise<void> {
    await this.#inner.release(owner);
  }

  async send<T>(given: Omit<TestCommand, 'instanceId'>, execute: () => Promise<T>): Promise<T> {
    const command: TestCommand = { ...given, instanceId: this.instanceId };
    this.fleet.sent(command);
    this.underWay.add(command);
    try {
      const { gate } = this;
      const decided = (): Promise<T> => this.#decide(command, execute);
      return await (gate ? gate(command.verb, command.resource, decided, command) : decided());
    } finally {
      this.underWay.delete(command);
    }
  }

  #decide<T>(command: TestCommand, execute: () => Promise<T>): Promise<T> {
    const trouble = this.trouble();
    if (trouble) return Promise.reject(trouble);
    const index = this.#failures.findIndex((failure) => failure.isOf(command));
    if (index === -1) return execute();
    const [{ fate }] = this.#failures.splice(index, 1) as [PlannedFailure];
    return fate(execute);
  }

  deliver(resource: string, deliver: () => void): void {
    const execute = async (): Promise<void> => {
      // The reply to the command that caused it arrives first, so that a log has the end before the next beginning.
      for (let turn = 0; turn < TURNS_OF_AN_ANSWER; turn++) await Promise.resolve();
      // The message is lost with the connection.
      if (!this.trouble()) deliver();
    };
    const { gate, instanceId } = this;
    void (gate ? gate('grant', resource, execute, { verb: 'grant', resource, instanceId }) : execute());
  }

  trouble(): LockStoreError | undefined {
    if (!this.fleet.isDown) return undefined;
    return new LockStoreError('notExecuted', 'Redis cannot be reached: a test has called redisDown()');
  }

  onReconnected(listener: () => void): void {
    this.#reconnected.push(listener);
  }

  onDisconnected(listener: () => void): void {
    this.#disconnected.push(listener);
  }

  /** Opens a new connection: messages may have been missed. */
  reconnect(): void {
    for (const listener of this.#reconnected) listener();
  }

  /** Drops the connection: messages are missed from now on. */
  disconnect(): void {
    for (const listener of this.#disconnected) listener();
  }

  closed(): void {
    this.fleet.left(this);
  }
}

const ofJob = (resource: string) => ({ verb: 'job', resource }) as const;

const OF_JOBS: Describe<JobStore, Exclude<keyof JobStore, 'refusal'>> = {
  claim: ({ resource }, { owner }) => ({ resource, owner: owner.id }),
  // With a run, it releases the lock of the job.
  end: ({ resource, id }, { claim, run }) => ({
    verb: run ? 'release' : claim?.to === 'finished' ? 'finish' : 'giveBack',
    resource,
    owner: id,
  }),
  note: ({ resource }) => ofJob(resource),
  look: (resources) => ofJob(resources.join()),
  pause: ofJob,
  resume: ofJob,
  request: ({ resource }) => ofJob(resource),
  register: (jobs) => ofJob(jobs.map(({ resource }) => resource).join()),
  list: () => ofJob(''),
};

const by = ({ resource, id: owner }: Pick<LockOwner, 'resource' | 'id'>) => ({ resource, owner });
const about = (resource: string) => ({ resource });

const OF_RESULTS: Describe<ResultStore, keyof ResultStore> = {
  read: (resource) => ({ verb: 'result', resource }),
  claim: (owner, leaseMs) => ({ verb: 'acquire', ...by(owner), leaseMs }),
  // It releases the lock.
  keep: (owner) => ({ verb: 'release', ...by(owner) }),
  forget: (resource) => ({ verb: 'result', resource }),
};

/** The clock of a fleet for one of its lock services. */
class InstanceClock implements Clock {
  /** Set when the application closes: it must not wait for a time that does not advance. */
  isClosing = false;

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now();
  }

  wallNow(): number {
    return this.clock.wallNow();
  }

  setTimer(callback: () => void, delayMs: number, options?: { background?: boolean }): Timer {
    const clock = this.isClosing ? SYSTEM_CLOCK : this.clock;
    return clock.setTimer(callback, delayMs, options);
  }
}

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

const ROLL = () => ({ verb: 'roll', resource: '' }) as const;
const TOLD_OF_ROLL_CALLS: Describe<RollCalls, keyof RollCalls> = {
  call: ROLL,
  answer: ROLL,
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
