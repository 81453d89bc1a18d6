import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describeThrown, quote, quoteSome } from '../../../kernel/util/quoted.js';
import type { Connection } from '../../../redis/connection/connection.js';
import type { RedisConnectionOption } from '../../../redis/connection/connection-options.js';
import { CliError, UsageError } from './exit-codes.js';
import { durationOption, flagOption, type OptionValues, textOption } from './options.js';
import type { CliProcess } from './terminal.js';

/** More than any caller waits, and less than the longest timer. */
const MAX_TIMEOUT_MS = 60 * 60_000;

/** The options of every command. */
export const COMMON_OPTIONS = {
  url: textOption('url', 'The address of Redis. Default: REDIS_URL.'),
  config: textOption('file', 'A module whose default export is your connection, for Sentinel, Cluster or TLS.'),
  prefix: textOption('prefix', 'The keyPrefix of the application. Detected by default.'),
  timeout: durationOption('How long Redis may take to connect and to answer. Default: 5s.', MAX_TIMEOUT_MS),
  json: flagOption('Prints JSON.'),
} as const;

export type CommonOptions = OptionValues<typeof COMMON_OPTIONS>;

/** The option of a command that takes locks. */
export const RESTART_QUARANTINE = 'restart-quarantine';

const PREFIX = /^[^{}\s\p{C}]{1,100}$/u;

/** The Redis to connect to, from the command line, the environment or a module. */
export interface Target {
  readonly connection: RedisConnectionOption;
  /** Not set: it has to be found. */
  readonly keyPrefix: string | undefined;
  /** That of the application. Not set: this process leaves it to the application to grant what it frees. */
  readonly restartQuarantineMs?: number | undefined;
}

/**
 * Reads where Redis is. Nothing is connected yet.
 *
 * @param warn told of a password that others can see
 * @throws UsageError
 */
export async function readTarget(
  options: CommonOptions,
  { env, load }: Pick<CliProcess, 'env' | 'load'>,
  warn: (line: string) => void,
): Promise<Target> {
  const { url, config, prefix } = options;
  if (url !== undefined && config !== undefined) throw new UsageError('Pass either --url or --config, not both.');
  if (prefix !== undefined && !PREFIX.test(prefix)) {
    throw new UsageError('--prefix must be 1 to 100 characters without braces or white space.');
  }
  if (config !== undefined) {
    const { connection, keyPrefix } = await readConfig(config, load);
    return { connection, keyPrefix: prefix ?? keyPrefix };
  }
  if (url !== undefined && /:\/\/[^/?#]*:[^@]*@/.test(url)) {
    warn('--url has a password in it, which every user of this machine can see. Use REDIS_URL or --config.');
  }
  const connection = url ?? env['REDIS_URL'];
  if (connection === undefined || connection === '') {
    throw new UsageError('Pass the address of Redis with --url, REDIS_URL in the environment, or --config.');
  }
  return { connection, keyPrefix: prefix };
}

async function readConfig(path: string, load: CliProcess['load']): Promise<Target> {
  let exported: { readonly default?: unknown; readonly keyPrefix?: unknown };
  try {
    exported = await load(pathToFileURL(resolve(path)).href);
  } catch (error) {
    throw new UsageError(`--config ${quote(path)} cannot be loaded: ${describeThrown(error)}`);
  }
  const { default: connection, keyPrefix } = exported;
  if (connection === undefined || connection === null) {
    throw new UsageError(`--config ${quote(path)} has no default export. Export the connection as default.`);
  }
  if (keyPrefix !== undefined && typeof keyPrefix !== 'string') {
    throw new UsageError(`keyPrefix of --config ${quote(path)} must be a string.`);
  }
  return { connection: connection as RedisConnectionOption, keyPrefix };
}

/** How many keys are looked at on each server, in steps of a thousand. */
const MAX_KEYS = 200_000;
const FENCE = /^(.+?)(?::\{[0-9a-z]+\})?:fence$/s;
/** Between the prefix of the application and a random text, for the keys of `doctor --try`. */
export const TRY_INFIX = ':try-';

export interface FoundPrefixes {
  readonly prefixes: readonly string[];
  /** Whether all keys were checked. */
  readonly isComplete: boolean;
}

/**
 * Looks for the prefixes of applications: each leaves a key `<prefix>:fence` when it first grants a lock.
 *
 * @param outerKeyPrefix the `keyPrefix` of the client of the user
 * @throws LockStoreError
 */
export async function findPrefixes(connection: Pick<Connection, 'servers' | 'outerKeyPrefix'>): Promise<FoundPrefixes> {
  const { outerKeyPrefix } = connection;
  const found = new Set<string>();
  let isComplete = true;
  for (const server of connection.servers()) {
    let steps = 0;
    const pattern = `${outerKeyPrefix.replace(/[*?[\]\\]/g, '\\$&')}*:fence`;
    for await (const keys of server.scan(pattern)) {
      for (const key of keys) {
        const [, prefix] = FENCE.exec(key) ?? [];
        const inner = prefix?.slice(outerKeyPrefix.length);
        if (inner !== undefined && PREFIX.test(inner) && !inner.includes(TRY_INFIX)) found.add(inner);
      }
      if (++steps * 1_000 < MAX_KEYS) continue;
      isComplete = false;
      break;
    }
  }
  return { prefixes: [...found].sort(), isComplete };
}

export const DEFAULT_PREFIX = 'lock';

/** @throws CliError if there are several applications */
export function onlyPrefix(found: FoundPrefixes): string {
  const { prefixes } = found;
  if (prefixes.length === 1) return prefixes[0]!;
  if (prefixes.length === 0) return DEFAULT_PREFIX;
  const named = quoteSome(prefixes, 20) + perhapsMore(found);
  throw new CliError('usage', `Several applications keep locks in this Redis. Choose one with --prefix: ${named}.`);
}

/** A hint that there may be others. */
export function perhapsMore({ isComplete }: FoundPrefixes): string {
  return isComplete ? '' : `, and perhaps more: only ${MAX_KEYS} keys of each server were checked`;
}

/** The default of `--by`. */
export function userName(): string | undefined {
  try {
    return userInfo().username.slice(0, 100) || undefined;
  } catch {
    // A user id without a name, as in containers.
    return undefined;
  }
}
