// Our end of a worker process.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
const KEPT_OUTPUT = 1_500;

const living = new Set();

/** For the end of the run, whatever brings it about. */
export function killAllWorkers() {
  for (const worker of living) worker.kill();
}

export class WorkerProcess {
  #process;
  #output = '';
  #asked = 0;
  #waiting = new Map();

  /** @param {{ contestant: string, url: string, execArgv?: string[] }} options */
  constructor({ contestant, url, execArgv = [] }) {
    this.#process = fork(WORKER, [contestant, url], {
      execArgv,
      serialization: 'advanced', // typed arrays
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    living.add(this);
    this.exited = new Promise((resolve) => this.#process.once('close', resolve));
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream.on('data', (chunk) => (this.#output = (this.#output + chunk).slice(-KEPT_OUTPUT)));
    }
    this.#process.on('message', (reply) => this.#receive(reply));
    this.#process.on('close', (code, signal) => {
      living.delete(this);
      this.#failAll(
        new Error(`The process ended with ${signal ?? `exit code ${code}`}. ${this.#output.trim()}`.trim()),
      );
    });
  }

  /** @returns {Promise<any>} rejects when the process ends, the task throws, or the time is up */
  ask(task, args, { timeoutMs = 30_000 } = {}) {
    return new Promise((resolve, reject) => {
      if (!this.#process.connected) return reject(new Error(`The process has ended. ${this.#output.trim()}`.trim()));
      const id = ++this.#asked;
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(`No result within ${timeoutMs / 1000} s`));
      }, timeoutMs);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#process.send({ id, task, args });
    });
  }

  kill() {
    this.#process.kill('SIGKILL');
  }

  #receive({ id, result, error }) {
    const asked = this.#waiting.get(id);
    if (asked === undefined) return; // too late
    this.#waiting.delete(id);
    clearTimeout(asked.timer);
    if (error === undefined) asked.resolve(result);
    else asked.reject(Object.assign(new Error(error.message), error));
  }

  #failAll(error) {
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.#waiting.clear();
  }
}
