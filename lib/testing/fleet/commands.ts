import type { LockStoreError } from '../../core/store/store-error.js';
import type { Retention } from '../../core/store/lock-store.js';

/** What becomes of a command on its way to the store and back. */
export type Fate = <T>(execute: () => Promise<T>) => Promise<T>;

/** The commands of the ports of a store, and the messages of the store to an instance. */
export type Verb =
  | 'acquire'
  /** Its resource is the list of the names, one for each place that is kept. */
  | 'keep'
  | 'rotate'
  | 'setDepth'
  | 'renew'
  | 'release'
  | 'retain'
  | 'label'
  | 'verify'
  | 'downgrade'
  | 'raiseToken'
  | 'transfer'
  | 'lowerPermits'
  | 'resize'
  | 'inspect'
  | 'list'
  | 'forceRelease'
  | 'watch'
  | 'claim'
  | 'finish'
  | 'giveBack'
  | 'job'
  | 'latch'
  /** A roll call, an answer to it, or a look at the answers. */
  | 'roll'
  /** A message: a waiter has been granted the resource, or the resource is free. */
  | 'grant';

/** A command of one instance, or a message to it. */
export interface TestCommand {
  readonly verb: Verb;
  /** Its lock, its latch, or the lock of its job. Of `list`, the prefix. */
  readonly resource: string;
  readonly instanceId: string;
  /** The owner id that it is about. Of a rotation, the one that releases; not set where there is none. */
  readonly owner?: string | undefined;
  /** Of a rotation, the owner that wants the resource next; of a transfer, the one that has it then. */
  readonly next?: string;
  readonly leaseMs?: number;
  /** Of a retention: the minimum, and how much of it can be left. */
  readonly retention?: Retention;
  readonly depth?: number;
  readonly label?: string | undefined;
  /** How many permits are left. */
  readonly count?: number;
  /** Whether it joins the queue of a resource that is not free. */
  readonly queueing?: boolean;
}

/**
 * Stands before every command and every message of an instance, and decides when it is executed and when its answer
 * comes. Without one, each is executed at once.
 *
 * @param execute executes it; to be called once at most
 */
export type Gate = <T>(verb: Verb, resource: string, execute: () => Promise<T>, command: TestCommand) => Promise<T>;

/** What the stores of one instance ask before each command. */
export interface CommandPath {
  send<T>(command: Omit<TestCommand, 'instanceId'>, execute: () => Promise<T>): Promise<T>;
  /** A message on its way to the instance. */
  deliver(resource: string, deliver: () => void): void;
  /** Why no command can be executed now. */
  trouble(): LockStoreError | undefined;
  /** Called when the connection is new: messages may have been missed. */
  onReconnected(listener: () => void): void;
  /** Called when the connection is lost: messages are missed from now on. */
  onDisconnected(listener: () => void): void;
  /** The lock store is closed: the instance is gone. */
  closed(): void;
}
