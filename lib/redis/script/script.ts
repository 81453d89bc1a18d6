import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { LockStoreError } from '../../kernel/store/store-error.js';
import { SCRIPT_TEXTS } from './scripts.generated.js';

/** A Lua script that runs as one atomic step in Redis. */
export interface Script {
  /** Its name in messages. */
  readonly name: string;
  readonly lua: string;
  /** The SHA-1 of its text, which EVALSHA takes. */
  readonly sha: string;
  /** EVALSHA and the hash, encoded: the same in each command that runs it. */
  readonly bySha: string;
  /** `true` if it mints fencing tokens, and so may grant locks. Its third key is the fence. */
  readonly mayGrant: boolean;
  /** Grants only what it frees. With one more argument, it grants nothing. */
  readonly frees?: boolean | undefined;
  /** The command that is sent in its place, with its keys alone. It does the same, and costs Redis less. */
  readonly sentAs?: 'get' | undefined;
}

/** The properties of a script beside its text, and the outcomes that count only once replicas have them. */
export interface ScriptFlags<T> extends Pick<Script, 'frees' | 'sentAs'> {
  /** Used only with the option `durability`. */
  readonly durable?: DurableOutcome<T> | undefined;
}

export interface DurableOutcome<T> {
  /** Each of its keys is a lock. @default the first key is the only one */
  readonly ofSeveral?: boolean;
  readonly isNeeded: (value: T) => boolean;
  /**
   * The value if too few replicas have it. Without this function the command is rejected as one whose effect may or may
   * not be lost.
   */
  readonly otherwise?: (value: T, error: LockStoreError) => T;
}

/** A script whose reply is read as `T`. */
export interface FlaggedScript<T> extends Script, ScriptFlags<T> {}

export interface ScriptCall<T> extends Pick<ScriptFlags<T>, 'durable'> {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly read: (reply: unknown) => T;
  /** No caller waits for it: it leaves together with later commands of the same turn of the event loop. */
  readonly lazily?: boolean | undefined;
}

export interface ScriptSender {
  /** @param fail turns an error of ioredis into a value or another error */
  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T>;
  /**
   * Returns true if the server at the other end of the present connection is known to have forgotten no lease. @default
   * it is
   */
  trusts?(client: Redis, fence: string): boolean;
}

/** The command by which a script counts the fence up. No token is minted without it; see lua/include/mint.lua. */
const MINTS = /\bredis\.p?call\('INCRBY'/;

/** @param name the name of its file in lua/, in camel case */
export function defineScript(name: keyof typeof SCRIPT_TEXTS): Script;
export function defineScript<T>(name: keyof typeof SCRIPT_TEXTS, flags: ScriptFlags<T>): FlaggedScript<T>;
export function defineScript<T>(name: keyof typeof SCRIPT_TEXTS, flags: ScriptFlags<T> = {}): FlaggedScript<T> {
  const lua = SCRIPT_TEXTS[name];
  // Every command reads these objects: with all properties present, they have one shape.
  const { frees, sentAs, durable } = flags;
  return { ...scriptOf(name, lua), frees, sentAs, durable };
}

/** Makes a script from its text. For a file in lua/, use {@link defineScript}. */
export function scriptOf(name: string, lua: string): Script {
  const sha = createHash('sha1').update(lua).digest('hex');
  return { name, lua, sha, bySha: `$7\r\nevalsha\r\n$40\r\n${sha}\r\n`, mayGrant: MINTS.test(lua) };
}
