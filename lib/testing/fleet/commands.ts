import type { LockStoreError } from '../../kernel/store/store-error.js';
import type { LockStore, Retention } from '../../kernel/store/lock-store.js';

/** Decides about a command on its way to the store and back. */
export type Fate = <T>(execute: () => Promise<T>) => Promise<T>;

/** The commands of the ports of a store, and the messages of the store to an instance. */
export type Verb =
  | LockCommand
  /** Its resource is the list of the names, one for each place that it keeps. */
  | 'keep'
  | 'claim'
  | 'finish'
  | 'giveBack'
  | 'job'
  /** A roll call, a reply to it, or a read of the replies. */
  | 'roll'
  /** A look for a kept result of `once`, or its end. */
  | 'result'
  /** A message: a waiter has been granted the resource, or the resource is free. */
  | 'grant';

/** A command of one instance, or a message to it. */
export interface TestCommand {
  readonly verb: Verb;
  /** The resource of the lock, or of the lock of its job. The prefix for `list`. */
  readonly resource: string;
  readonly instanceId: string;
  /** The owner id. For a rotation, the one that releases; undefined if there is none. */
  readonly owner?: string | undefined;
  /** For a rotation, the owner that wants the resource next. */
  readonly next?: string;
  readonly leaseMs?: number;
  /** For a retention: the minimum, and the longest rest of it. */
  readonly retention?: Retention;
  readonly depth?: number;
  readonly label?: string | undefined;
  readonly count?: number;
  /** `true` if it joins the queue of a resource that is not free. */
  readonly queueing?: boolean;
}

/**
 * Called for every command and every message of an instance: decides when it is executed and when its reply arrives.
 * Without a gate, each is executed at once.
 *
 * @param execute executes it; call it at most once
 */
export type Gate = <T>(verb: Verb, resource: string, execute: () => Promise<T>, command: TestCommand) => Promise<T>;

/** The path that each command of an instance takes to the store. */
export interface CommandPath {
  send<T>(command: Omit<TestCommand, 'instanceId'>, execute: () => Promise<T>): Promise<T>;
  /** A message on its way to the instance. */
  deliver(resource: string, deliver: () => void): void;
  /** Returns the reason why no command can be executed now. */
  trouble(): LockStoreError | undefined;
  /** Calls the listener for a new connection: messages may have been missed. */
  onReconnected(listener: () => void): void;
  /** Calls the listener for a lost connection: messages are missed from now on. */
  onDisconnected(listener: () => void): void;
  /** Called when the lock store is closed: the instance has gone. */
  closed(): void;
}

type Method = (...args: never[]) => Promise<unknown>;

/** Sends a command of a port. @param execute calls the store behind */
export type Send<V> = (verb: V, args: never[], execute: () => Promise<unknown>) => Promise<unknown>;

type CommandOf<P> = { [K in keyof P]: P[K] extends Method ? K : never }[keyof P];

/** The methods of a lock store that send a command. */
export type LockCommand = Exclude<CommandOf<LockStore>, 'close' | undefined>;

/** Describes each command by its arguments. Without a verb, that is the name of the method. */
export type Describe<P, V extends keyof P> = {
  readonly [K in V]: P[K] extends ((...args: infer A) => unknown) | undefined
    ? (...args: A) => Omit<TestCommand, 'instanceId' | 'verb'> & { readonly verb?: Verb }
    : never;
};

/** Makes methods of a port that send each command to the store behind. */
export function forwarded<P, V extends string & keyof P>(inner: P, verbs: readonly V[], send: Send<V>): Pick<P, V> {
  const methods = verbs.map((verb) => {
    const method: Method = (...args) => send(verb, args, () => (inner[verb] as Method).apply(inner, args));
    return [verb, method];
  });
  return Object.fromEntries(methods) as Pick<P, V>;
}

/** Makes methods of a port that pass each command to the path of an instance. */
export function throughPath<P, V extends string & keyof P>(
  inner: P,
  descriptions: Describe<P, V>,
  path: CommandPath,
): Pick<P, V> {
  return forwarded(inner, Object.keys(descriptions) as V[], sendBy(path, descriptions));
}

/** Makes a function that sends commands by the path of an instance. */
export function sendBy<P, V extends string & keyof P>(path: CommandPath, descriptions: Describe<P, V>): Send<V> {
  return (verb, args, execute) => {
    const describe = descriptions[verb] as (...args: never[]) => Omit<TestCommand, 'instanceId' | 'verb'>;
    return path.send({ verb: verb as Verb, ...describe(...args) }, execute);
  };
}
