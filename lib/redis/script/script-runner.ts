import { Command, type Redis } from 'ioredis';
import { nextTick } from '../../kernel/util/promises.js';
import { replyCode, withoutRepeatedArguments } from './failures.js';
import type { ScriptCall, ScriptSender } from './script.js';
import { entryOf } from '../../kernel/util/objects.js';

/**
 * Sends a script to the node of a cluster that is importing its slot. After ASKING, the node executes one command for
 * that slot. The command has the text of the script: if the node did not know the hash, a second command would be
 * redirected.
 */
export const ASKING: ScriptSender = {
  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>) {
    client.asking().catch(() => {}); // the next command fails as well, with the reason
    return sendWithText(client, call).then(call.read, fail);
  },
};

/** The number of commands of one turn of the event loop that leave together, after the first one. */
const COMMANDS_AT_ONCE = 8;

const NO_ARGUMENTS: never[] = [];
const IN_TEXT = { replyEncoding: 'utf8' } as const;

type SentScript = Pick<ScriptCall<unknown>, 'script' | 'keys' | 'args'>;

/**
 * EVALSHA or EVAL, or what a script is sent as, encoded here: what ioredis does for commands in general takes longer
 * than Redis takes for a lock. The arguments are only in the encoded text, so no error and no trace of ioredis can show
 * them: an owner id is a secret.
 */
class ScriptCommand extends Command {
  readonly #text: string;

  constructor(evaluated: 'evalsha' | 'eval', call: SentScript) {
    const name = call.script.sentAs ?? evaluated;
    super(name, NO_ARGUMENTS, IN_TEXT);
    // Nearly always a character is a byte. To look at all of it once takes less than to count the bytes of each part.
    const text = encoded(name, call, ({ length }) => length);
    this.#text = Buffer.byteLength(text) === text.length ? text : encoded(name, call, Buffer.byteLength);
  }

  override toWritable(): string {
    return this.#text;
  }
}

const REJECT = Symbol('reject');

/**
 * The property in which ioredis keeps the function that rejects a command. Redis adds the arguments to its message for
 * an unknown command, and ioredis publishes the error to all that trace its commands. So it is shortened before, at no
 * cost for commands that succeed. An accessor, because ioredis assigns the function while the command is constructed.
 */
Object.defineProperty(ScriptCommand.prototype, 'reject', {
  configurable: true,
  get(this: { [REJECT]: (error: Error) => void }) {
    // The one of now: instrumentations read it, and then put their own in its place, which calls it.
    const reject = this[REJECT];
    return (error: Error) => reject.call(this, withoutArguments(error));
  },
  set(this: { [REJECT]: (error: Error) => void }, reject: (error: Error) => void) {
    this[REJECT] = reject;
  },
});

function withoutArguments(error: Error): Error {
  const { message, stack } = error;
  const shortened = withoutRepeatedArguments(message);
  if (shortened === message) return error;
  error.message = shortened;
  // It begins with the message.
  error.stack = stack?.replace(message, () => shortened);
  return error;
}

/** Sends the text of the script. Redis knows its hash from then on. */
function sendWithText(client: Redis, call: SentScript): Promise<unknown> {
  return client.sendCommand(new ScriptCommand('eval', call)) as Promise<unknown>;
}

/** By the size of a text. To write a number takes as long as the rest of a short text. */
const BEGIN_OF_BULK = Array.from({ length: 128 }, (_, size) => `$${size}\r\n`);

/** @param sizeOf how many bytes a text has */
function encoded(name: string, { script, keys, args }: SentScript, sizeOf: (text: string) => number): string {
  const bulk = (text: string): string => `${BEGIN_OF_BULK[sizeOf(text)] ?? `$${sizeOf(text)}\r\n`}${text}\r\n`;
  if (script.sentAs) return `*${keys.length + 1}\r\n${[name, ...keys].map(bulk).join('')}`;
  const begin = name === 'evalsha' ? script.bySha : `$4\r\neval\r\n${bulk(script.lua)}`;
  let text = `*${keys.length + args.length + 3}\r\n${begin}${bulk(String(keys.length))}`;
  for (const key of keys) text += bulk(key);
  for (const arg of args) text += bulk(String(arg));
  return text;
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && replyCode(error.message) === 'NOSCRIPT';
}

/**
 * Sends scripts by their hash, and by their text if Redis does not know the hash (a new server, or SCRIPT FLUSH). The
 * text loads the script, too. `defineCommand` would change the client, and would send the text of a lost script only if
 * it has sent it before.
 *
 * The commands that are sent in one turn of the event loop leave in few writes. A write is a system call, and most of
 * what a small command costs. The first command leaves at once and the others a few at a time, so Redis works while
 * they are written.
 */
export class ScriptRunner implements ScriptSender {
  #sentInTurn = 0;
  /** The streams that are held back, of one or several servers. */
  readonly #corked = new Set<Redis['stream']>();
  /** The scripts whose text each stream has taken, with the number of that text among all. */
  readonly #texts = new WeakMap<Redis['stream'], Map<string, number>>();
  #textsSent = 0;

  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    const { read } = call;
    const textsBefore = this.#textsSent;
    return this.#write(client, new ScriptCommand('evalsha', call), call.lazily).then(read, (error: unknown) => {
      if (!isUnknownScript(error)) return fail(error);
      return this.#sendUnknown(client, call, textsBefore).then(read, fail);
    });
  }

  /**
   * Many commands may be under way when a server is new, and a text is long. Redis executes the commands of one
   * connection in order: if another command has brought the text since, the hash is known by now.
   */
  async #sendUnknown<T>(client: Redis, call: ScriptCall<T>, textsBefore: number): Promise<unknown> {
    if ((this.#texts.get(client.stream)?.get(call.script.sha) ?? 0) > textsBefore) {
      try {
        return await this.#write(client, new ScriptCommand('evalsha', call), call.lazily);
      } catch (error) {
        // Forgotten again.
        if (!isUnknownScript(error)) throw error;
      }
    }
    const reply = sendWithText(client, call);
    this.#noteText(client.stream, call.script.sha);
    return reply;
  }

  #noteText(stream: Redis['stream'] | undefined, sha: string): void {
    if (!stream) return;
    entryOf(this.#texts, stream, () => new Map<string, number>()).set(sha, ++this.#textsSent);
  }

  #write(client: Redis, command: Command, lazily?: boolean): Promise<unknown> {
    const isFirst = this.#sentInTurn++ === 0;
    if (isFirst) nextTick(this.#endTurn);
    if (!isFirst || lazily) this.#cork(client.stream);
    const reply = client.sendCommand(command) as Promise<unknown>;
    if (!lazily && this.#sentInTurn % COMMANDS_AT_ONCE === 1) this.#uncork();
    return reply;
  }

  readonly #endTurn = (): void => {
    this.#sentInTurn = 0;
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
