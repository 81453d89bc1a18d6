import type { Cluster, Redis } from 'ioredis';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { replyCode, shortenReply } from '../../../redis/script/failures.js';
import type { FencedCommand } from './fenced-commands.js';

/**
 * An entry of COMMAND INFO. Since Redis 7, its last part has such entries for the subcommands, for example of CLIENT.
 */
type CommandInfo = readonly [name: string, arity: number, flags: Iterable<unknown>, ...rest: unknown[]];

const SUBCOMMANDS = 9;

/** The commands that the server of each client runs in scripts, as far as it was asked. */
const runnable = new WeakMap<object, Set<string>>();
/** Clients that may not use COMMAND INFO. */
const unable = new WeakSet<object>();

/**
 * Refuses commands that the server does not run in a script: they would fail after others have run. COMMAND INFO asks
 * the server once for each command. If that is not possible, the process warns once, and only the commands of {@link
 * NOT_IN_SCRIPTS} are refused.
 *
 * @returns `undefined` if all commands are known already, so that the caller need not wait
 * @throws InvalidLockOptionsError, or the error of ioredis
 */
export function checkRunnable(client: Redis | Cluster, commands: readonly FencedCommand[]): Promise<void> | undefined {
  if (unable.has(client)) return undefined;
  let known = runnable.get(client);
  if (!known) runnable.set(client, (known = new Set()));
  const isKnown = (command: FencedCommand): boolean => known.has(nameOf(command)) || known.has(fullNameOf(command));
  return commands.every(isKnown) ? undefined : ask(client, commands, known);
}

async function ask(client: Redis | Cluster, commands: readonly FencedCommand[], known: Set<string>): Promise<void> {
  const names = [...new Set(commands.map(nameOf))];
  const infos = await client.call('command', ['info', ...names]).catch((error: unknown) => {
    const { message = '' } = error as Partial<Error>;
    if (!['NOPERM', 'ERR'].includes(replyCode(message) ?? '')) throw error;
    return shortenReply(message);
  });
  if (!isAnswer(infos, names.length)) return goOnUnasked(client, infos);
  const byName = new Map(names.map((name, index) => [name, infos[index]]));
  for (const [index, command] of commands.entries()) {
    const info = byName.get(nameOf(command));
    const what = `commands[${index}] is ${command[0]}`;
    if (!info) throw refusal(`${what}, which this Redis does not know`);
    const subcommands = (info[SUBCOMMANDS] ?? []) as readonly CommandInfo[];
    const named = subcommands.find(([name]) => name.toLowerCase() === fullNameOf(command)) ?? info;
    if ([...named[2]].includes('noscript'))
      throw refusal(`${what}, which this Redis does not run in scripts. Send it without the guard`);
    known.add(subcommands.length > 0 ? fullNameOf(command) : nameOf(command));
  }
}

/** Some servers that are compatible with Redis answer in another form. */
function isAnswer(answer: unknown, length: number): answer is readonly (CommandInfo | null)[] {
  if (!Array.isArray(answer) || answer.length !== length) return false;
  return answer.every(
    (info: CommandInfo | null) => info === null || (typeof info[2] === 'object' && Symbol.iterator in info[2]),
  );
}

function goOnUnasked(client: object, answer: unknown): void {
  unable.add(client);
  const why =
    typeof answer === 'string' && answer !== '' ? answer : 'its reply to COMMAND INFO has an unexpected format';
  process.emitWarning(
    `fence.guard cannot ask Redis which commands it runs in scripts (${why}), and uses a list of its own. A command ` +
      'that is not in the list may fail after the commands before it were executed. Give the ACL user +command|info ' +
      '(before Redis 7: +command).',
    'FenceGuardWarning',
  );
}

function nameOf([name]: FencedCommand): string {
  return name.toLowerCase();
}

function fullNameOf([name, subcommand]: FencedCommand): string {
  return `${name}|${String(subcommand)}`.toLowerCase();
}

function refusal(why: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `fence.guard cannot run these commands: ${why}. Nothing was executed.`,
    'commands',
  );
}
