import { Command, type Redis } from 'ioredis';
import type { ScriptCall } from './connection.js';
import { replyCode } from './failures.js';

/** Sends scripts to a server. */
export interface ScriptSender {
  /** @param fail what to make of what ioredis rejects with */
  run<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T>;
}

/**
 * To a node of a cluster that a slot is on its way to: once, it answers for it. With the text of the script, because ASKING counts
 * for one command only.
 */
export const ASKING: ScriptSender = {
  run<T>(client: Redis, { script, keys, args, read }: ScriptCall<T>, fail: (error: unknown) => Promise<T>) {
    client.asking().catch(() => {}); // the next command fails too
    return client.eval(script.lua, keys.length, ...keys, ...args).then(read, fail);
  },
};

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

  constructor({ script: { sha }, keys, args }: Pick<ScriptCall<unknown>, 'script' | 'keys' | 'args'>) {
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
export class ScriptRunner implements ScriptSender {
  #sentInTick = 0;
  /** Streams that are held back, of one server or of several. */
  readonly #corked = new Set<Redis['stream']>();

  run<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    const { script, keys, args, read } = call;
    return this.#send(client, new ScriptCommand(call), call.lazily).then(read, (error: unknown) => {
      if (!(error instanceof Error) || replyCode(error.message) !== 'NOSCRIPT') return fail(error);
      return client.eval(script.lua, keys.length, ...keys, ...args).then(read, fail);
    });
  }

  #send(client: Redis, command: Command, lazily?: boolean): Promise<unknown> {
    const isFirst = this.#sentInTick++ === 0;
    if (isFirst) nextTick(this.#endTick);
    if (!isFirst || lazily) this.#cork(client.stream);
    const reply = client.sendCommand(command) as Promise<unknown>;
    if (!lazily && this.#sentInTick % COMMANDS_AT_ONCE === 1) this.#uncork();
    return reply;
  }

  readonly #endTick = (): void => {
    this.#sentInTick = 0;
    this.#uncork();
  };

  #cork(stream: Redis['stream']): void {
    if (this.#corked.has(stream)) return;
    this.#corked.add(stream);
    stream.cork();
  }

  #uncork(): void {
    for (const stream of this.#corked) stream.uncork();
    this.#corked.clear();
  }
}
