import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { unbundled } from '../../support/process/run-typescript.js';
import type { Kind, Library, Order } from './counting.js';

/** A process that counts, of the old release or of the new one. */
export class Pod {
  readonly #child: ChildProcess;
  readonly #said: Promise<string>;
  readonly #ready: Promise<unknown>;

  constructor(kind: Kind, library: Library, url: string, ...args: readonly string[]) {
    const main = new URL(`${kind}-pod.ts`, import.meta.url);
    // murlock reads files that lie beside its own.
    this.#child = spawn(process.execPath, [...unbundled(main), library, ...args], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: url },
    });
    this.#said = text(this.#child.stderr!);
    this.#ready = Promise.race([once(this.#child, 'message'), this.#exited()]);
  }

  /** Resolves when it counts, or has failed. */
  async ready(): Promise<void> {
    await this.#ready;
    if (this.#isOver) throw new Error(`a pod ended before it began: ${await this.#said}`);
  }

  tell(order: Order): void {
    this.#child.send(order);
  }

  goOn(): void {
    this.#child.kill('SIGCONT');
  }

  /** Resolves to what it has complained of. */
  async end(): Promise<string> {
    if (!this.#isOver) {
      this.goOn();
      if (this.#child.connected) this.tell('end');
      await this.#exited();
    }
    return this.#said;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  get #isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async #exited(): Promise<void> {
    if (!this.#isOver) await once(this.#child, 'exit');
  }
}
