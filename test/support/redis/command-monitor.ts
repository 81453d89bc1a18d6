import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Redis } from 'ioredis';
import { requestOf } from '../network/redis-requests.js';

/** @param source `lua` for commands of a script, else who sent it */
type See = (args: readonly string[], source: string) => void;

/**
 * All commands that a server executes. By a socket of its own: ioredis knows that it is monitoring only a moment after it has
 * read the answer, so what comes together with that (on a busy machine, or a busy server) is taken for an answer to nothing, and
 * the client reconnects.
 */
export class CommandMonitor implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #redis: Redis;
  #awaited: { readonly text: string; readonly resolve: () => void } | undefined;

  private constructor(socket: Socket, redis: Redis) {
    this.#socket = socket;
    this.#redis = redis;
  }

  /** @param redis whose server it is, and whose user may do this */
  static async start(redis: Redis, see: See): Promise<CommandMonitor> {
    const { host, port, username, password } = redis.options;
    const socket = connect(port!, host);
    const monitor = new CommandMonitor(socket, redis);
    const greeting = [...(password ? [['AUTH', username ?? 'default', password]] : []), ['MONITOR']];
    await new Promise<void>((resolve, reject) => {
      let unanswered = greeting.length;
      socket.on('error', reject).on('close', () => reject(new Error('The monitored server has closed the connection')));
      // By default, a line feed that comes 100 ms after its carriage return is a line of its own.
      createInterface({ input: socket, crlfDelay: Infinity }).on('line', (line) => {
        if (unanswered === 0) return monitor.#read(line, see);
        if (line !== '+OK') return reject(new Error(`MONITOR was refused: ${line}`));
        if (--unanswered === 0) resolve();
      });
      for (const command of greeting) socket.write(requestOf(...command));
    });
    return monitor;
  }

  /** Resolves when all has been seen that was executed before. */
  async seenAll(): Promise<void> {
    const text = `seen ${Math.random()}`;
    const seen = new Promise<void>((resolve) => (this.#awaited = { text, resolve }));
    await this.#redis.echo(text);
    await seen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Closed where the server has ended since.
    if (!this.#socket.closed) await once(this.#socket.destroy(), 'close');
  }

  #read(line: string, see: See): void {
    const [, source, rest] = /^\+[\d.]+ \[\d+ ([^\]]*)\] (.*)$/.exec(line) ?? [];
    if (source === undefined) throw new Error(`Not a line of MONITOR: ${line}`);
    const args = [...rest!.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text!.replace(/\\(["\\])/g, '$1'));
    if (args[1] !== this.#awaited?.text) see(args, source);
    else this.#awaited?.resolve();
  }
}
