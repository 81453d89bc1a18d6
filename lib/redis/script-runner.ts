import { Command, type Redis } from 'ioredis';
import { replyCode } from './failures.js';
import type { Script } from './scripts/script.js';

type Argument = string | number;

/** The real one, whatever a test makes of the process's later. */
const { nextTick } = process;

/** How many commands of one tick leave together, once the first has left by itself. */
const COMMANDS_AT_ONCE = 8;

const NO_ARGUMENTS: never[] = [];
const IN_TEXT = { replyEncoding: 'utf8' } as const;

/**
 * EVALSHA, written by hand: what ioredis does for commands in general costs a lock more than Redis takes for it. The
 * arguments stand in the text alone, so no error and no trace of ioredis can show them.
 */
class ScriptCommand extends Command {
  readonly #text: string;

  constructor({ sha }: Script, keys: readonly string[], args: readonly Argument[]) {
    super('evalsha', NO_ARGUMENTS, IN_TEXT);
    let text = `*${keys.length + args.length + 3}\r\n$7\r\nevalsha\r\n$40\r\n${sha}\r\n${bulk(String(keys.length))}`;
    for (const key of keys) text += bulk(key);
    for (const arg of args) text += bulk(String(arg));
    this.#text = text;
  }

  override toWritable(): string {
    return this.#text;
  }
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

/**
 * Runs scripts by their hash, and by their text when Redis does not know the hash (a new server, or SCRIPT FLUSH): that
 * loads them too. Not `defineCommand`: it changes the client, and recovers a lost script only where it has sent it before.
 *
 * The commands that are sent in one tick leave in few writes. A write is a system call, and for small commands most of what
 * they cost. The first one leaves at once, and the others a few at a time, so that Redis works while they are written.
 */
export class ScriptRunner {
  #sentInTick = 0;
  #corked: Redis['stream'] | undefined;

  /**
   * @param read what to make of the reply
   * @param fail what to throw in place of what ioredis rejects with
   * @param lazily nobody waits for it: it leaves together with what is sent after it in the same tick
   */
  run<T>(
    client: Redis,
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    read: (reply: unknown) => T,
    fail: (error: unknown) => never,
    lazily = false,
  ): Promise<T> {
    return this.#send(client, new ScriptCommand(script, keys, args), lazily).then(read, (error: unknown) => {
      if (!(error instanceof Error) || replyCode(error.message) !== 'NOSCRIPT') return fail(error);
      return client.eval(script.lua, keys.length, ...keys, ...args).then(read, fail);
    });
  }

  #send(client: Redis, command: Command, lazily: boolean): Promise<unknown> {
    const isFirst = this.#sentInTick++ === 0;
    if (isFirst) nextTick(this.#endTick);
    if ((!isFirst || lazily) && this.#corked === undefined) (this.#corked = client.stream).cork();
    const reply = client.sendCommand(command) as Promise<unknown>;
    if (!lazily && this.#sentInTick % COMMANDS_AT_ONCE === 1) this.#uncork();
    return reply;
  }

  readonly #endTick = (): void => {
    this.#sentInTick = 0;
    this.#uncork();
  };

  #uncork(): void {
    this.#corked?.uncork();
    this.#corked = undefined;
  }
}
