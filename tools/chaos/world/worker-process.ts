import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { atExit } from '../../../test/support/process/at-exit.js';
import { programOf, programsOf, type Replaced } from '../../../test/support/process/program.js';
import type { Command, WorkerSettings } from '../worker/settings.js';

const main = new URL('../worker/worker-process-main.ts', import.meta.url);

/** Longer than any worker takes to close its application and to end. */
const CLOSE_MS = 15_000;
const KEPT_OUTPUT = 4_000;

/** The program of the workers. @param replaced a broken file of the library */
export function workerProgram(replaced?: Replaced): string {
  return programOf(main, replaced);
}

/** Builds the program of the workers. Blocks this process, and with it the network of running worlds. */
export function prepareWorkers(variants: readonly (Replaced | undefined)[]): void {
  programsOf(main, variants);
}

/** One process of the application, as the harness sees it. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly exited: Promise<void>;
  readonly ready: Promise<void>;
  #output = '';
  #isStopped = false;

  constructor(
    readonly settings: WorkerSettings,
    env: NodeJS.ProcessEnv,
    replaced?: Replaced,
  ) {
    this.#child = fork(workerProgram(replaced), {
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '', ...env, CHAOS_WORKER: JSON.stringify(settings) },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.on('data', (chunk: Buffer) => (this.#output = (this.#output + String(chunk)).slice(-KEPT_OUTPUT)));
    }
    // One that is suspended could not end by itself.
    const calledOff = atExit(() => this.#child.kill('SIGKILL'));
    this.exited = once(this.#child, 'close').then(calledOff);
    this.ready = new Promise((resolve, reject) => {
      this.#child.once('message', () => resolve());
      void this.exited.then(() => reject(new Error(`${this.instanceId} ended before it was ready.\n${this.#output}`)));
    });
    this.ready.catch(() => undefined);
  }

  get instanceId(): string {
    return this.settings.instanceId;
  }

  /** Its standard output and error: empty, if all is well. */
  get output(): string {
    return this.#output;
  }

  /** 0, if it ended by itself and all was well. */
  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  send(command: Command): void {
    if (this.#child.connected) this.#child.send(command, () => undefined);
  }

  /** Stops it with SIGSTOP, wherever it is. */
  suspend(): void {
    this.#isStopped = this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
    this.#isStopped = false;
  }

  /** SIGKILL, which leaves it no time for anything. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited;
  }

  /** Closes its application, by a command or by the signal of an orchestrator. Kills the process if that then does not end by itself. */
  async close(how: 'command' | 'SIGTERM' = 'command'): Promise<void> {
    if (how === 'command') this.send({ type: 'close' });
    else this.#child.kill('SIGTERM');
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), CLOSE_MS)));
    const ended = await Promise.race([this.exited.then(() => true), tooLong]);
    clearTimeout(timer);
    if (!ended) await this.kill();
  }
}
