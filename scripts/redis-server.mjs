// Starts a private Redis: a free port on the loopback, a temporary folder, nothing on disk unless asked for, and gone
// when this process is.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from './redis/free-port.mjs';
import { KeptServer } from './redis/kept-server.mjs';
import { answersPing } from './redis/ping.mjs';
import { chosenRedis, installedRedis } from './setup/find-redis.mjs';

const READY_MS = 20_000;
const PORT_ATTEMPTS = 5;
const LOG_TAIL_LINES = 20;
const READY_LINE = /Ready to accept connections|Sentinel ID is/;

/** @type {typeof import('./redis-server.d.mts').startRedisServer} */
export async function startRedisServer({ source, port, config, args = [], env = {} } = {}) {
  const chosen = source ?? chosenRedis(process.env) ?? (await installedRedis(process.env));
  if (chosen === undefined) {
    throw new Error(
      'No redis-server on PATH. `npm test` and `npm run demo` find or install one; or set REDIS_SERVER_BIN.',
    );
  }
  const spec = { path: chosen.path, image: chosen.image, config, args, env };
  for (let attempt = 1; ; attempt++) {
    const server = new RedisServer({ ...spec, port: port ?? (await findFreePort()) });
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Another process took the port between our look at it and the start.
      const portWasTaken = /address already in use|port is already allocated/i.test(error.message);
      if (port !== undefined || !portWasTaken || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

class RedisServer {
  #spec;
  #server = new KeptServer();

  constructor(spec) {
    this.#spec = spec;
    this.port = spec.port;
    this.url = `redis://127.0.0.1:${spec.port}`;
    this.folder = this.#server.folder;
  }

  get pid() {
    return this.#server.pid;
  }

  async start({ keepData = false, args = [] } = {}) {
    await this.#server.start({ ...this.#spec, args: [...this.#spec.args, ...args], keepData });
    const deadline = Date.now() + READY_MS;
    while (!(await this.#isReady())) {
      if (!this.#server.isRunning) throw await this.#notReady('ended at once');
      if (Date.now() > deadline) throw await this.#notReady(`is not ready after ${READY_MS / 1000} s`);
      await sleep(10);
    }
  }

  async kill() {
    await this.#server.kill();
  }

  async pause() {
    await this.#server.signal('SIGSTOP');
  }

  async resume() {
    await this.#server.signal('SIGCONT');
  }

  async restart(options = {}) {
    await this.#server.shutDown();
    await this.start(options);
  }

  async stop() {
    await this.#server.stop();
  }

  async [Symbol.asyncDispose]() {
    await this.stop();
  }

  /** PING alone could be answered by another server, if ours lost a race for the port and is about to end. */
  async #isReady() {
    return READY_LINE.test(await this.#log()) && (await answersPing(this.port));
  }

  #log() {
    return readFile(join(this.folder, 'server.log'), 'utf8');
  }

  async #notReady(what) {
    const tail = (await this.#log()).trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
    return new Error(`${this.#spec.path ?? this.#spec.image} on port ${this.port} ${what}. Its log ends:\n${tail}`);
  }
}
