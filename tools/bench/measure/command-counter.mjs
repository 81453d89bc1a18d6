// Counts the commands that clients send, on the wire: a proxy before Redis that reads just enough of RESP to see where
// one command ends. INFO commandstats would also count what scripts call, and no Redis before 8 counts per client.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const NEW_LINE = 10;

export class CommandCounter {
  commands = 0;
  #server;
  #sockets = new Set();

  /** @param {string} redisUrl */
  static async start(redisUrl) {
    const counter = new CommandCounter();
    const { hostname, port } = new URL(redisUrl);
    counter.#server = createServer({ noDelay: true }, (client) => counter.#serve(client, { host: hostname, port }));
    counter.#server.listen(0, '127.0.0.1');
    await once(counter.#server, 'listening');
    counter.url = `redis://127.0.0.1:${counter.#server.address().port}`;
    return counter;
  }

  stop() {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #serve(client, address) {
    const redis = connect({ ...address, noDelay: true });
    const countIn = commandReader(() => this.commands++);
    client.on('data', (chunk) => {
      countIn(chunk);
      redis.write(chunk);
    });
    redis.on('data', (chunk) => client.write(chunk));
    for (const [socket, other] of [
      [client, redis],
      [redis, client],
    ]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined); // a killed worker: 'close' follows
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}

/**
 * Reads a stream of commands (`*<count>`, then for each part `$<length>` and that many bytes), in pieces of any size.
 *
 * @param {() => void} onCommand
 * @returns {(chunk: Buffer) => void}
 */
export function commandReader(onCommand) {
  let line = ''; // what has come of a line so far
  let parts = 0; // of the command that is being read
  let skip = 0; // bytes of a part, and the line end after it
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (skip > 0) {
        const skipped = Math.min(skip, chunk.length - at);
        skip -= skipped;
        at += skipped;
        if (skip === 0 && --parts === 0) onCommand();
        continue;
      }
      const end = chunk.indexOf(NEW_LINE, at);
      line += chunk.toString('latin1', at, end < 0 ? chunk.length : end + 1);
      if (end < 0) return;
      at = end + 1;
      const number = Number.parseInt(line.slice(1), 10);
      if (line[0] === '*') parts = number;
      else skip = number + 2;
      line = '';
    }
  };
}
