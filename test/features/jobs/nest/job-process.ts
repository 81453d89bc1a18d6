import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '../../../support/expect/eventually.js';
import type { JobMessage, JobSetup } from './job-process-main.js';
import { programOf } from '../../../support/process/program.js';

const main = programOf(new URL('job-process-main.ts', import.meta.url));
const skewedClock = new URL('../../../support/process/skewed-clock.mjs', import.meta.url).href;

/** The time that Nest may take to load: among a dozen busy processes, each gets a sixth of a core. */
const START_MS = 45_000;

type Told<T extends JobMessage['type']> = Extract<JobMessage, { type: T }>;

/** One run of the job: by whom, of which tick, and its fencing token, which grows with Redis's clock. */
export interface JobRun {
  readonly by: JobProcess;
  readonly tick: string;
  readonly rerun: boolean;
  readonly beganAt: number;
  readonly endedAt: number | undefined;
  readonly fencingToken: number;
}

/** An application in a process of its own, with one singleton job. */
export class JobProcess {
  readonly messages: JobMessage[] = [];
  #output = '';
  readonly #child: ChildProcess;

  constructor(setup: JobSetup, clockSkewMs: number) {
    const execArgv = ['--import', skewedClock];
    const env = { ...process.env, NODE_OPTIONS: '', CLOCK_SKEW_MS: String(clockSkewMs) };
    this.#child = fork(main, [JSON.stringify(setup)], { execArgv, env, silent: true });
    this.#child.on('message', (message) => this.messages.push(message as JobMessage));
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.on('data', (text: Buffer) => (this.#output += String(text)));
    }
  }

  /**
   * Its stdout and stderr: the log of Nest. Without the remarks about a stalled machine: late timers of the package
   * `cron`, ticks missed in that time, and leases that were not renewed.
   */
  get output(): string {
    const stalls =
      /^(\[Cron\] Missed execution deadline|.*(\bticks? of job .* (was|were) missed|The event loop was blocked)).*\n?/gm;
    return this.#output.replace(stalls, '');
  }

  told<T extends JobMessage['type']>(...types: T[]): Told<T>[] {
    return this.messages.filter((message): message is Told<T> => (types as string[]).includes(message.type));
  }

  /** The runs of its job. Each run that a process began starts after the one before. */
  get runs(): JobRun[] {
    const ended = this.told('ended');
    const began = this.told('began');
    return this.told('tickStarted').flatMap(({ tick, rerun }, index) => {
      const beginning = began[index];
      if (!beginning) return [];
      const { at: beganAt, fencingToken } = beginning;
      const endedAt = ended.find((end) => end.fencingToken === fencingToken)?.at;
      return [{ by: this, tick, rerun, beganAt, endedAt, fencingToken }];
    });
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  async signal(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (!this.isRunning) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
  }
}

/** The processes of one test, which share a job. */
export class JobFleet {
  readonly processes: JobProcess[] = [];

  constructor(private readonly setup: JobSetup) {}

  get keyPrefix(): string {
    return this.setup.keyPrefix;
  }

  /** Starts a process for each clock, by how much it is ahead, and waits until all of them are ready. */
  start(...clockSkewsMs: number[]): Promise<JobProcess[]> {
    return this.#start(clockSkewsMs, this.setup);
  }

  /** Starts one whose job takes that long. */
  async startSlow(clockSkewMs: number, jobLastsMs: number): Promise<JobProcess> {
    const [started] = await this.#start([clockSkewMs], { ...this.setup, jobLastsMs });
    return started!;
  }

  async #start(clockSkewsMs: number[], setup: JobSetup): Promise<JobProcess[]> {
    const started = clockSkewsMs.map((skewMs) => new JobProcess(setup, skewMs));
    this.processes.push(...started);
    await eventually(() => {
      for (const { isRunning, messages, output } of started) {
        if (messages[0]?.type !== 'ready')
          throw new Error(`not ready${isRunning ? '' : ', and it has ended'}: ${output}`);
      }
    }, START_MS);
    expect(started.map(({ output }) => output).join('')).toBe('');
    return started;
  }

  /** The runs of the whole fleet, in the order in which Redis granted them. */
  get runs(): JobRun[] {
    return this.processes.flatMap(({ runs }) => runs).sort((a, b) => a.fencingToken - b.fencingToken);
  }

  /** The output of all processes. */
  get output(): string {
    return this.processes.map(({ output }) => output).join('');
  }
}

/** Gives fleets of processes, and kills them after each test. */
export function useJobFleets(
  url: () => string,
): (setup: Omit<JobSetup, 'url' | 'keyPrefix'> & { readonly keyPrefix?: string }) => JobFleet {
  const fleets: JobFleet[] = [];
  let prefixes = 0;
  afterEach(async () => {
    const processes = fleets.splice(0).flatMap((fleet) => fleet.processes);
    await Promise.all(processes.map((jobProcess) => jobProcess.signal('SIGKILL')));
  });
  return (setup) => {
    const fleet = new JobFleet({ keyPrefix: `fleet-${++prefixes}`, ...setup, url: url() });
    fleets.push(fleet);
    return fleet;
  };
}
