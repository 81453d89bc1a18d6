import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { atExit } from '../../../test/support/process/at-exit.js';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import { programOf, programsOf, type Replaced } from '../../../test/support/process/program.js';
import type { CronWorkerSetup } from './cron-process-main.js';
import { TickHistory, type TickLine } from './tick-log.js';

const main = new URL('cron-process-main.ts', import.meta.url);
const execArgv = ['--import', new URL('../../../test/support/process/skewed-clock.mjs', import.meta.url).href];
/** Only limits the duration of a broken run. */
const PATIENCE_MS = 60_000;

/** Makes what the processes run, for variants of the library: much faster than one after the other. */
export function prepareCronWorkers(variants: readonly Replaced[]): void {
  programsOf(main, variants);
}

/** One process of the fleet. */
export class CronWorker {
  isReady = false;
  isFiring = false;
  isStopped = false;
  output = '';
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  /** When it was seen dead. */
  killedAt: number | undefined;

  constructor(
    readonly setup: CronWorkerSetup,
    skewMs: number,
    replaced: Replaced | undefined,
  ) {
    const env = { ...process.env, NODE_OPTIONS: '', CLOCK_SKEW_MS: String(skewMs) };
    this.#child = fork(programOf(main, replaced), [JSON.stringify(setup)], { execArgv, env, silent: true });
    // One that is suspended could not end by itself.
    this.#exited = once(this.#child, 'exit').then(atExit(() => this.#child.kill('SIGKILL')));
    this.#child.once('message', () => (this.isReady = true));
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.on('data', (text: Buffer) => (this.output += String(text)));
    }
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  fire(): void {
    this.isFiring = true;
    this.#child.send('fire');
  }

  pause(): void {
    this.isStopped = true;
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    this.isStopped = false;
    this.#child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
    this.killedAt = machineNow();
  }

  /** Fires nothing more, ends what is under way, and exits. @throws where it does not */
  async end(): Promise<void> {
    if (!this.isRunning) throw new Error(`${this.setup.name} has ended by itself: ${this.output}`);
    this.#child.send('end');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), PATIENCE_MS);
    await this.#exited;
    clearTimeout(timer);
    if (this.#child.exitCode !== 0) throw new Error(`${this.setup.name} did not end: ${this.output}`);
  }
}

/** Processes that share the jobs, with wall clocks that differ. */
export class CronFleet implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'cron-'));
  readonly #workers: CronWorker[] = [];
  readonly #calledOff = atExit(() => this.#removeFolder());

  constructor(
    private readonly setup: Omit<CronWorkerSetup, 'name' | 'logFile'>,
    private readonly skewMs: () => number,
    private readonly replaced?: Replaced,
  ) {}

  /** Processes that can be killed and suspended. */
  get awake(): CronWorker[] {
    return this.#workers.filter(({ isFiring, isStopped, isRunning }) => isFiring && !isStopped && isRunning);
  }

  /** Starts so many processes; when all are ready, they fire. */
  async join(count = 1): Promise<void> {
    const joining = Array.from({ length: count }, () => this.#start());
    const giveUpAt = performance.now() + PATIENCE_MS;
    for (const worker of joining) {
      while (!worker.isReady) {
        const { isRunning, output, setup } = worker;
        if (!isRunning || performance.now() > giveUpAt) throw new Error(`${setup.name} is not ready: ${output}`);
        await sleep(10);
      }
    }
    for (const worker of joining) worker.fire();
  }

  #start(): CronWorker {
    const name = `worker-${this.#workers.length + 1}`;
    const worker = new CronWorker(
      { ...this.setup, name, logFile: join(this.#folder, name) },
      this.skewMs(),
      this.replaced,
    );
    this.#workers.push(worker);
    return worker;
  }

  /** All that live end what they have begun. */
  async end(): Promise<void> {
    await Promise.all(this.#workers.filter(({ killedAt }) => killedAt === undefined).map((worker) => worker.end()));
  }

  /** The merged logs of all processes. */
  history(): TickHistory {
    const history = new TickHistory();
    for (const { setup, killedAt } of this.#workers) {
      if (!existsSync(setup.logFile)) continue; // it is starting
      // A line without its line break was cut off by a kill.
      const lines = readFileSync(setup.logFile, 'utf8').split('\n').slice(0, -1);
      for (const line of lines) history.add(JSON.parse(line) as TickLine);
      if (killedAt !== undefined) history.add({ type: 'killed', on: setup.name, at: killedAt });
    }
    return history;
  }

  /** The output of all processes. */
  get output(): string {
    return this.#workers.map(({ output }) => output).join('');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.filter(({ isRunning }) => isRunning).map((worker) => worker.kill()));
    this.#calledOff();
    this.#removeFolder();
  }

  #removeFolder(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
