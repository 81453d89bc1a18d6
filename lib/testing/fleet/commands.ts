import type { LockStoreError } from '../../kernel/store/store-error.js';
import type { LockStore, Retention } from '../../kernel/store/lock-store.js';

/** What becomes of a command on its way to the store and back. */
export type Fate = <T>(execute: () => Promise<T>) => Promise<T>;

/** The commands of the ports of a store, and the messages of the store to an instance. */
export type Verb =
  | LockCommand
  /** Its resource is the list of the names, one for each place that is kept. */
  | 'keep'
  | 'claim'
  | 'finish'
  | 'giveBack'
  | 'job'
  /** A roll call, an answer to it, or a look at the answers. */
  | 'roll'
  /** A message: a waiter has been granted the resource, or the resource is free. */
  | 'grant';

/** A command of one instance, or a message to it. */
export interface TestCommand {
  readonly verb: Verb;
  /** Its lock, or the lock of its job. Of `list`, the prefix. */
  readonly resource: string;
  readonly instanceId: string;
  /** The owner id that it is about. Of a rotation, the one that releases; not set where there is none. */
  readonly owner?: string | undefined;
  /** Of a rotation, the owner that wants the resource next. */
  readonly next?: string;
  readonly leaseMs?: number;
  /** Of a retention: the minimum, and how much of it can be left. */
  readonly retention?: Retention;
  readonly depth?: number;
  readonly label?: string | undefined;
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

type Method = (...args: never[]) => Promise<unknown>;

/** Sends a command of a port. @param execute what the store behind does */
export type Send<V> = (verb: V, args: never[], execute: () => Promise<unknown>) => Promise<unknown>;

/** The methods of a lock store that send a command. */
export const LOCK_COMMANDS = [
  'acquire',
  'rotate',
  'setDepth',
  'renew',
  'release',
  'retain',
  'label',
  'verify',
  'downgrade',
  'raiseToken',
  'lowerPermits',
  'resize',
  'inspect',
  'list',
  'forceRelease',
  'watch',
] as const satisfies readonly (keyof LockStore)[];
export type LockCommand = (typeof LOCK_COMMANDS)[number];

/** What a command says of itself, by its arguments. Without a verb, that is the name of the method. */
export type Told<P, V extends keyof P> = {
  readonly [K in V]: P[K] extends ((...args: infer A) => unknown) | undefined
    ? (...args: A) => Omit<TestCommand, 'instanceId' | 'verb'> & { readonly verb?: Verb }
    : never;
};

/** Makes methods of a port that send each command on its way to the store behind. */
function forwarded<P, V extends string & keyof P>(inner: P, verbs: readonly V[], send: Send<V>): Pick<P, V> {
  const methods = verbs.map((verb) => {
    const method: Method = (...args) => send(verb, args, () => (inner[verb] as Method).apply(inner, args));
    return [verb, method];
  });
  return Object.fromEntries(methods) as Pick<P, V>;
}

/** Makes methods of a port that tell the path of an instance of each command. */
export function throughPath<P, V extends string & keyof P>(inner: P, told: Told<P, V>, path: CommandPath): Pick<P, V> {
  return forwarded(inner, Object.keys(told) as V[], sendBy(path, told));
}

/** Sends commands by the path of an instance. */
export function sendBy<P, V extends string & keyof P>(path: CommandPath, told: Told<P, V>): Send<V> {
  return (verb, args, execute) => {
    const tell = told[verb] as (...args: never[]) => Omit<TestCommand, 'instanceId' | 'verb'>;
    return path.send({ verb: verb as Verb, ...tell(...args) }, execute);
  };
}

/** The commands of a lock store, as methods that send each on its way to the store behind. */
export const ForwardedLocks = class {
  constructor(inner: LockStore, send: Send<LockCommand>) {
    Object.assign(this, forwarded(inner, LOCK_COMMANDS, send));
  }
} as new (inner: LockStore, send: Send<LockCommand>) => Pick<LockStore, LockCommand>;
