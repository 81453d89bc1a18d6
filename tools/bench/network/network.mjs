import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { commandReader } from './command-reader.mjs';
import { DelayedPipe } from './delayed-pipe.mjs';
import { Trips } from './trips.mjs';

/** Proxies between processes and servers: they delay what is sent, count commands, and count round trips. */
export class Network {
  /** What clients have sent, on the wire: a script is one. */
  commands = 0;
  #delayMs;
  #trips = new Trips();
  #servers = [];
  #sockets = new Set();

  /** @param {{ delayMs?: number }} [options] `delayMs`: how much later everything arrives, each way */
  constructor({ delayMs = 0 } = {}) {
    this.#delayMs = delayMs;
  }

  /**
   * @param {string} from names the process, which may have several ways and connections
   * @param {string} to names the server
   * @param {string} url of the server
   * @returns {Promise<string>} the URL by which the process reaches it
   */
  async way(from, to, url) {
    const { hostname: host, port } = new URL(url);
    const server = createServer({ noDelay: true }, (client) => this.#serve(client, { host, port }, { from, to }));
    this.#servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return `redis://127.0.0.1:${server.address().port}`;
  }

  /** Counts round trips from here on. */
  begin() {
    this.#trips.begin();
  }

  /** How many round trips, one after another, were needed for what this process has received since `begin()`. */
  tripsOf(name) {
    return this.#trips.of(name);
  }

  stop() {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers) server.close();
  }

  #serve(client, address, { from, to }) {
    const server = connect({ ...address, noDelay: true });
    const count = commandReader(() => this.commands++);
    client.on('data', count);
    this.#connect(client, server, from, to);
    this.#connect(server, client, to, from);
  }

  /** Passes on what comes from the one socket. */
  #connect(source, target, from, to) {
    const pipe = new DelayedPipe(this.#delayMs, ({ chunk, arrive }) => {
      arrive(to);
      target.write(chunk);
    });
    source.on('data', (chunk) => pipe.push({ chunk, arrive: this.#trips.leave(from) }));
    this.#sockets.add(source);
    source.on('error', () => undefined); // a killed worker: 'close' follows
    source.on('close', () => {
      this.#sockets.delete(source);
      pipe.clear();
      target.destroy();
    });
  }
}
