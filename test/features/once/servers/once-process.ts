import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { programOf } from '../../../support/process/program.js';
import type { OnceVerbs } from './once-process-main.js';

const main = programOf(new URL('once-process-main.ts', import.meta.url));

/** The message of an answer that cannot come any more. */
export const ENDED = 'The process has ended';

/** A process of its own that calls `once`, and can be stopped and killed. */
export class OnceProcess {
  readonly child: ChildProcess;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  readonly #ready: Promise<unknown>;
  #asked = 0;

  constructor(url: string, leaseMs: number) {
    this.child = fork(main, [url, String(leaseMs)], { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } });
    this.#ready = this.#answer(0);
    this.child.on('message', ({ id, value, error }: { id: number; value?: unknown; error?: string }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(error));
    });
    this.child.on('exit', () => this.#fail());
  }

  get pid(): number {
    return this.child.pid!;
  }

  async ready(): Promise<this> {
    await this.#ready;
    return this;
  }

  /** Rejects if the process ends before it answers. */
  ask<V extends keyof OnceVerbs>(verb: V, ...args: Parameters<OnceVerbs[V]>): ReturnType<OnceVerbs[V]> {
    const id = ++this.#asked;
    const answer = this.#answer(id);
    // Without a channel, it has ended.
    this.child.send({ id, verb, args }, (error) => error && this.#fail());
    return answer as ReturnType<OnceVerbs[V]>;
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }

  #fail(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(ENDED));
    this.#waiting.clear();
  }

  #answer(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
}

/** Starts processes, and kills those that still run after each test. */
export function useOnceProcesses(url: () => string): (leaseMs: number) => Promise<OnceProcess> {
  const running: OnceProcess[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.kill()));
  });
  return (leaseMs) => {
    const started = new OnceProcess(url(), leaseMs);
    running.push(started);
    return started.ready();
  };
}
