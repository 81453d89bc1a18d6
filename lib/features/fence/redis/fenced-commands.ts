import { Command } from 'ioredis';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { describeValue } from '../../../kernel/api/validation.js';

/** A command to run under a guard: its name, then its arguments, like the parameters of `redis.call()`. */
export type FencedCommand = readonly [name: string, ...args: readonly (string | number | Buffer)[]];

/** The maximum number of parts of a command: Lua passes them to Redis on a stack of 8,000. */
export const MAX_COMMAND_PARTS = 5_000;

/**
 * The commands that Redis 7 never runs in a script, for clients that may not ask. They would fail after others have
 * run.
 */
export const NOT_IN_SCRIPTS: ReadonlySet<string> = new Set(
  (
    'multi exec discard watch unwatch eval evalsha eval_ro evalsha_ro fcall fcall_ro subscribe unsubscribe ' +
    'psubscribe punsubscribe ssubscribe sunsubscribe monitor auth hello reset quit wait waitaof blpop brpop ' +
    'blmove brpoplpush bzpopmin bzpopmax role save bgsave bgrewriteaof shutdown failover replicaof slaveof sync ' +
    'psync replconf debug'
  ).split(' '),
);

const NAME = /^[a-z][a-z0-9._-]*$/;
const MARK = 'key:';

/** Commands in the form that the script expects; see its header. */
interface PackedCommands {
  /** In upper case, for messages. */
  readonly names: readonly string[];
  readonly keys: readonly (string | Buffer)[];
  readonly layout: string;
  readonly values: readonly (string | Buffer)[];
}

/**
 * Splits the arguments of commands into keys and values. Redis must know the keys, for the slots of a cluster and for
 * ACLs, and the client puts its keyPrefix before them.
 *
 * @throws InvalidLockOptionsError
 */
export function packCommands(commands: unknown, guardKey: string): PackedCommands {
  if (!Array.isArray(commands)) throw invalid(`commands must be an array of commands, not ${describeValue(commands)}`);
  const names: string[] = [];
  const keys: (string | Buffer)[] = [];
  const values: (string | Buffer)[] = [];
  const layouts: string[] = [];
  for (const [index, command] of commands.entries()) {
    const [name, ...args] = checkCommand(command, index);
    names.push(name.toUpperCase());
    values.push(name);
    let layout = 'v';
    for (const [position, isKey] of markKeys(name, args).entries()) {
      const arg = args[position]!;
      if (isKey && arg.toString() === guardKey) {
        throw invalid(`commands[${index}] uses the key of the guard. Give the guard a key of its own`);
      }
      (isKey ? keys : values).push(arg);
      layout += isKey ? 'k' : 'v';
    }
    layouts.push(layout);
  }
  return { names, keys, layout: layouts.join(' '), values };
}

/** Marks the arguments that are keys: those before which ioredis would put its keyPrefix. */
function markKeys(name: string, args: readonly (string | Buffer)[]): boolean[] {
  const marked = new Command(name, [...args], { keyPrefix: MARK }).args;
  return args.map((arg, position) => marked[position] !== arg);
}

function checkCommand(command: unknown, index: number): [name: string, ...args: (string | Buffer)[]] {
  const where = `commands[${index}]`;
  if (!Array.isArray(command) || command.length === 0) {
    throw invalid(`${where} must be a non-empty array such as ['SET', key, value], not ${describeValue(command)}`);
  }
  if (command.length > MAX_COMMAND_PARTS) {
    throw invalid(`${where} has ${command.length} parts, more than ${MAX_COMMAND_PARTS}: split it up`);
  }
  const [name, ...args] = command as unknown[];
  const lowerCase = typeof name === 'string' ? name.toLowerCase() : '';
  if (!NAME.test(lowerCase))
    throw invalid(`${where} must begin with the name of a command, not ${describeValue(name)}`);
  if (NOT_IN_SCRIPTS.has(lowerCase))
    throw invalid(
      `${where} is ${name as string}, which Redis does not run in scripts. ` +
        'Send it without the guard. Nothing was executed',
    );
  return [lowerCase, ...args.map((arg, position) => checkArgument(arg, `${where}[${position + 1}]`))];
}

/** The message does not contain the value: it may be a secret. */
function checkArgument(arg: unknown, where: string): string | Buffer {
  if (typeof arg === 'string' || Buffer.isBuffer(arg)) return arg;
  if (typeof arg === 'number' && Number.isFinite(arg)) return String(arg);
  const found = typeof arg === 'object' || typeof arg === 'function' ? describeValue(arg) : `${typeof arg}`;
  throw invalid(`${where} must be a string, a finite number or a Buffer, not ${typeof arg === 'number' ? arg : found}`);
}

function invalid(why: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`fence.guard cannot run these commands: ${why}.`, 'commands');
}
