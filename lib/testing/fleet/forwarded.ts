import { LOCK_COMMANDS } from '../../core/store/lock-stores.js';
import type { LockStore } from '../../core/store/lock-store.js';
import type { CommandPath, TestCommand, Verb } from './commands.js';

type Method = (...args: never[]) => Promise<unknown>;

/** Sends a command of a port. @param execute what the store behind does */
export type Send<V> = (verb: V, args: never[], execute: () => Promise<unknown>) => Promise<unknown>;

/** The methods of a lock store that send a command. */
export type LockCommand = (typeof LOCK_COMMANDS)[number];

/** What a command says of itself, by its arguments. Without a verb, that is the name of the method. */
export type Told<P, V extends keyof P> = {
  readonly [K in V]: P[K] extends ((...args: infer A) => unknown) | undefined
    ? (...args: A) => Omit<TestCommand, 'instanceId' | 'verb'> & { readonly verb?: Verb }
    : never;
};

/** Makes methods of a port that send each command on its way to the store behind. */
export function forwarded<P, V extends string & keyof P>(inner: P, verbs: readonly V[], send: Send<V>): Pick<P, V> {
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
