import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { programOf } from '../../support/process/program.js';
import type { Library, Verbs } from './worker-main.js';

export type { Library };

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** A process of its own that locks with one of the libraries, and can be killed. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #asked = 0;

  private constructor() {
    const main = programOf(new URL('worker-main.ts', import.meta.url));
    this.#child = fork(main, { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } });
    this.#child.on('message', (message) => this.#waiting.get((message as Answer).id)?.(message as Answer));
    this.#child.on('exit', () => {
      for (const [id, settle] of this.#waiting) settle({ id, error: 'The worker has ended' });
    });
  }

  static async start(library: Library, port: number, leaseMs: number): Promise<Worker> {
    const worker = new Worker();
    await worker.ask('start', library, port, leaseMs);
    return worker;
  }

  async ask<V extends keyof Verbs>(verb: V, ...args: Parameters<Verbs[V]>): Promise<Awaited<ReturnType<Verbs[V]>>> {
    const id = ++this.#asked;
    const answer = await new Promise<Answer>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#child.send({ id, verb, args });
    });
    this.#waiting.delete(id);
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.value as Awaited<ReturnType<Verbs[V]>>;
  }

  /** SIGKILL, which leaves it no time for anything. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

/** Starts workers, and kills those that still run after each test. */
export function useWorkers(port: () => number): (library: Library, leaseMs?: number) => Promise<Worker> {
  const running: Worker[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((worker) => worker.kill()));
  });
  return async (library, leaseMs = 30_000) => {
    const worker = await Worker.start(library, port(), leaseMs);
    running.push(worker);
    return worker;
  };
}
