import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { commandReader } from './command-reader.mjs';

/** A proxy before a server, which counts what clients send on the wire: a script is one command. */
export class CountingProxy {
  commands = 0;
  #sockets = new Set();
  #server;

  /** @returns {Promise<string>} the URL by which clients reach the server at `url` */
  async start(url) {
    const { hostname: host, port } = new URL(url);
    this.#server = createServer({ noDelay: true }, (client) => {
      const server = connect({ host, port, noDelay: true });
      client.on(
        'data',
        commandReader(() => this.commands++),
      );
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined); // a killed worker
      }
      client.pipe(server).pipe(client);
    });
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `redis://127.0.0.1:${this.#server.address().port}`;
  }

  stop() {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}
