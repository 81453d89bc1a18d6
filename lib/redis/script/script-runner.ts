import { Command, type Redis } from 'ioredis';
import { replyCode } from './failures.js';
import type { ScriptCall, ScriptSender } from './script.js';

/**
 * To a node of a cluster that a slot is on its way to: once, it answers for it. With the text of the script, because ASKING counts
 * for one command only.
 */
export const ASKING: ScriptSender = {
  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>) {
    client.asking().catch(() => {}); // the next command fails too
    return sendWithText(client, call).then(call.read, fail);
  },
};

/** The real one, whatever a test makes of the process's later. */
const { nextTick } = process;

/** How many commands of one tick leave together, once the first has left by itself. */
const COMMANDS_AT_ONCE = 8;

const NO_ARGUMENTS: never[] = [];
const IN_TEXT = { replyEncoding: 'utf8' } as const;

/**
 * EVALSHA or EVAL, written by hand: what ioredis does for commands in general costs a lock more than Redis takes for it. The
 * arguments stand in the text alone, so no error and no trace of ioredis can show them: an owner id is a secret.
 */
class ScriptCommand extends Command {
  readonly #text: string;

  constructor(name: 'evalsha' | 'eval', { script, keys, args }: Pick<ScriptCall<unknown>, 'script' | 'keys' | 'args'>) {
    super(name, NO_ARGUMENTS, IN_TEXT);
    const begin =
      name === 'evalsha' ? `$7\r\nevalsha\r\n$40\r\n${script.sha}\r\n` : `$4\r\neval\r\n${bulk(script.lua)}`;
    let text = `*${keys.length + args.length + 3}\r\n${begin}${bulk(String(keys.length))}`;
    for (const key of keys) text += bulk(key);
    for (const arg of args) text += bulk(String(arg));
    this.#text = text;
  }

  override toWritable(): string {
    return this.#text;
  }
}

/** With the text of the script: Redis knows it after that. */
function sendWithText(client: Redis, call: Pick<ScriptCall<unknown>, 'script' | 'keys' | 'args'>): Promise<unknown> {
  return client.sendCommand(new ScriptCommand('eval', call)) as Promise<unknown>;
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

  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    const { read } = call;
    return this.#write(client, new ScriptCommand('evalsha', call), call.lazily).then(read, (error: unknown) => {
      if (!(error instanceof Error) || replyCode(error.message) !== 'NOSCRIPT') return fail(error);
      return sendWithText(client, call).then(read, fail);
    });
  }

  #write(client: Redis, command: Command, lazily?: boolean): Promise<unknown> {
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
