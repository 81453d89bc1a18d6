// Our end of the channel to the process that owns a server. It keeps this process alive only while a question is open.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export class KeeperChannel {
  /** Of the server that ended last. */
  exitedPid;
  #process;
  #exited;
  #asked = 0;
  #waiting = new Map();

  constructor() {
    this.#process = fork(fileURLToPath(new URL('keeper.mjs', import.meta.url)), {
      // In a group of its own: Ctrl-C in a terminal goes to the whole group, and the application that is being stopped
      // still wants to release its locks.
      detached: true,
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#exited = once(this.#process, 'exit');
    this.#process.on('message', (message) => this.#receive(message));
    this.#process.on('exit', () => this.#failAll()).on('error', () => this.#failAll());
    this.#unref();
  }

  ask(verb, argument) {
    return new Promise((resolve, reject) => {
      if (!this.#process.connected) return reject(new Error('This Redis server was stopped'));
      const id = ++this.#asked;
      this.#waiting.set(id, { resolve, reject });
      this.#process.channel.ref();
      this.#process.send({ id, verb, argument });
    });
  }

  /** The same way a crash of ours would take. */
  async end() {
    this.#process.ref();
    if (this.#process.connected) this.#process.disconnect();
    await this.#exited;
  }

  #receive({ id, result, error, exited }) {
    if (exited !== undefined) {
      this.exitedPid = exited;
      return;
    }
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#unref();
    if (error === undefined) resolve(result);
    else reject(new Error(error));
  }

  #failAll() {
    for (const { reject } of this.#waiting.values()) reject(new Error('The keeper of the Redis server has ended'));
    this.#waiting.clear();
  }

  #unref() {
    this.#process.unref();
    this.#process.channel?.unref();
  }
}
