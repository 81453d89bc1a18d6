import type { Redis } from 'ioredis';
import { describeServer } from './address.js';
import { replyCode } from './failures.js';
import type { Script } from './script.js';
import * as SCRIPTS from './scripts.js';

/** The rights that the Redis user of one server lacks, as rules for `ACL SETUSER`. */
export interface MissingRights {
  readonly server: string;
  /** Without them, calls fail. */
  readonly needed: readonly string[];
  /** Without them, waiters get their grants later, or errors have fewer details. */
  readonly helpful: readonly string[];
  /** `true` if it refuses keys of different slots: it is a node of a cluster, and the connection names one Redis. */
  readonly isOfCluster: boolean;
}

export interface RightsInUse {
  /** A key for the probe, which no lock uses. It looks like the key of a lock. */
  readonly probeKey: string;
  readonly fence: string;
  /** A channel on which the message of the probe means nothing. */
  readonly channel: string;
  readonly prefix: string;
  readonly isDurable: boolean;
  readonly isQuarantined: boolean;
}

/** The scripts that this instance does not send, or not to this server, or only with an option. */
const OTHERS: readonly Script[] = [SCRIPTS.GUARD, SCRIPTS.PROBE, SCRIPTS.QUARANTINE, SCRIPTS.TRY_WRITE];

const CALL = /\bredis\.(p?call)\('([A-Z]+)'(?:, '([A-Z]+)')?/g;

const NO_SCRIPT = '0'.repeat(40);

/**
 * The commands inside the scripts, as the ACL calls them. The value is `true` if a script fails without the command: it
 * can do without the ones that it only tries by `pcall`.
 */
export function commandsInScripts(isQuarantined = true): Map<string, boolean> {
  const commands = new Map<string, boolean>();
  const scripts = (Object.values(SCRIPTS) as Script[]).filter((script) => !OTHERS.includes(script));
  for (const { lua } of isQuarantined ? [...scripts, SCRIPTS.QUARANTINE] : scripts) {
    for (const [, how, command, subcommand] of lua.matchAll(CALL)) {
      const name = [command, subcommand].filter(Boolean).join('|').toLowerCase();
      commands.set(name, commands.get(name) === true || how === 'call');
    }
  }
  return commands;
}

/**
 * Asks a server which rights its user lacks, in one round trip; in two if the user lacks the keys, or if their slot is
 * at another node of the cluster.
 *
 * @returns no rights if the server does not answer: then other calls fail with the reason
 */
export async function findMissingRights(client: Redis, use: RightsInUse): Promise<MissingRights> {
  const commands = commandsInScripts(use.isQuarantined);
  // No client subscribes to the last one: a message to all instances, from each one that starts, would be many.
  const args = [use.probeKey, use.fence, use.channel, [...commands.keys()].join(' '), `${use.prefix}:roll:probe`];
  const refusalOf = (sent: Promise<unknown>): Promise<string> => sent.then(() => '', messageOf);
  const probe = (...keys: string[]): Promise<string[] | string> =>
    client.call('EVAL', SCRIPTS.PROBE.lua, keys.length, ...keys, ...args).catch(messageOf) as Promise<
      string[] | string
    >;
  // Servers that lock the keys of a script before it runs refuse keys that are not declared.
  const declared = probe(use.probeKey, use.fence).then((said) =>
    typeof said === 'string' && isAboutKeys(said) ? probe() : said,
  );
  // All of them are written before the first reply. EVAL is allowed or refused by a name of its own.
  const [probed, evalsha, exists, wait] = await Promise.all([
    declared,
    refusalOf(client.call('EVALSHA', NO_SCRIPT, 0)),
    refusalOf(client.exists(use.probeKey, use.fence)),
    use.isDurable ? refusalOf(client.wait(0, 1)) : '',
  ]);
  const needed = new Set<string>();
  const helpful = new Set<string>();
  if (isNoPermission(evalsha)) needed.add('+evalsha');
  if (isNoPermission(wait)) needed.add('+wait');
  if (typeof probed === 'string' && isNoPermission(probed)) needed.add('+eval');
  // Each command, with the refusal of Redis.
  for (const [index, command] of (Array.isArray(probed) ? probed : []).entries()) {
    if (index % 2 === 1) continue;
    const refusal = probed[index + 1]!;
    // The fence is tried by EXISTS, which is tried by its own name as well.
    if (isCommand(refusal) && command !== 'fence' && command !== 'roll')
      (commands.get(command) ? needed : helpful).add(`+${command}`);
    else if (/ channels?\b/.test(refusal)) helpful.add(`&${asPattern(use.prefix)}:*`);
    else if (/ keys?\b/.test(refusal)) needed.add(`~${asPattern(use.prefix)}:*`);
  }
  const isOfCluster = replyCode(exists) === 'CROSSSLOT';
  return { server: describeServer(client), needed: [...needed].sort(), helpful: [...helpful].sort(), isOfCluster };
}

/** Returns true if a refusal is about a command, and not about its keys or its channel. */
function isCommand(refusal: string): boolean {
  return /\brun (this|the) /.test(refusal);
}

/** Returns true if a server refuses a script because of its keys. */
function isAboutKeys(refusal: string): boolean {
  return (
    /^(MOVED|ASK|TRYAGAIN|CROSSSLOT|CLUSTERDOWN)$/.test(replyCode(refusal)) ||
    (isNoPermission(refusal) && !isCommand(refusal))
  );
}

function messageOf(error: unknown): string {
  return (error as Partial<Error> | undefined)?.message ?? '';
}

function isNoPermission(message: string): boolean {
  return message !== '' && replyCode(message) === 'NOPERM';
}

/** A prefix in a pattern of the ACL, which only this prefix matches. */
function asPattern(prefix: string): string {
  return prefix.replace(/[*?[\]\\]/g, '\\$&');
}
