import type { JobStore } from '../../features/jobs/core/job-store.js';
import type { ResultStore } from '../../features/once/core/result-store.js';
import type { LockOwner } from '../../kernel/store/lock-store.js';
import type { LockStores } from '../../kernel/lock-stores.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { type Clock, type Random, SYSTEM_CLOCK, type Timer } from '../../kernel/util/clock.js';
import { type MemoryLockStore, memoryStores } from '../../memory/memory-lock-store.js';
import type { MemoryServer } from '../../memory/memory-server.js';
import { type CommandPath, type Gate, type TestCommand, throughPath, type Describe } from './commands.js';
import type { PlannedFailure } from './failures.js';
import { by, TestLockStore } from './test-lock-store.js';

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
