import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { HoldReport, LeaseView, Section, Verbs } from './lock-process-main.js';
import { programOf } from './program.js';

const main = programOf(new URL('lock-process-main.ts', import.meta.url));

/** A process of its own that locks on command, and can be stopped and killed. */
export class LockProcess {
  readonly child: ChildProcess;
  /** As it stands in the queue and in the lock. */
  readonly instanceId: string;
  #asked = 0;

  private constructor(program: string) {
    this.child = fork(program, {
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      serialization: 'advanced',
    });
    this.instanceId = `process-${this.child.pid}`;
    this.child.setMaxListeners(100);
  }

  /**
   * @param program with the same verbs
   * @param slowness of the clock of its locks
   */
  static async start(url: string, leaseMs: number, program = main, slowness?: number): Promise<LockProcess> {
    const lockProcess = new LockProcess(program);
    await lockProcess.ask('start', url, leaseMs, slowness);
    return lockProcess;
  }

  async ask<V extends keyof Verbs>(verb: V, ...args: Parameters<Verbs[V]>): Promise<Awaited<ReturnType<Verbs[V]>>> {
    type Answer = { id: number; value?: Awaited<ReturnType<Verbs[V]>>; error?: string };
    const id = ++this.#asked;
    const answer = new Promise<Answer>((resolve, reject) => {
      const receive = (message: Answer): void => {
        if (message.id === id) settle(() => resolve(message));
      };
      const exit = (): void => settle(() => reject(new Error(`The lock process ended before it answered ${verb}`)));
      const settle = (end: () => void): void => {
        this.child.off('message', receive).off('exit', exit);
        end();
      };
      this.child.on('message', receive).on('exit', exit);
    });
    this.child.send({ id, verb, args });
    const { value, error } = await answer;
    if (error !== undefined) throw new Error(error);
    return value!;
  }

  /** Continues a process that was asked to stop, and gives its answer. Repeated: it may not have stopped yet. */
  async continue<T>(answer: Promise<T>): Promise<T> {
    const timer = setInterval(() => this.child.kill('SIGCONT'), 20);
    return answer.finally(() => clearInterval(timer));
  }

  /** SIGSTOP, from outside, wherever it is. */
  suspend(): void {
    this.child.kill('SIGSTOP');
  }

  resume(): void {
    this.child.kill('SIGCONT');
  }

  /** SIGKILL, which leaves it no time for anything. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }
}

/** Starts lock processes, and kills the remaining ones after each test. */
export function useProcesses(
  url: () => string,
  program?: string,
  slowness?: number,
): (leaseMs?: number, at?: string) => Promise<LockProcess> {
  const running: LockProcess[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((lockProcess) => lockProcess.kill()));
  });
  return async (leaseMs = 10_000, at = url()) => {
    const lockProcess = await LockProcess.start(at, leaseMs, program, slowness);
    running.push(lockProcess);
    return lockProcess;
  };
}

export type { HoldReport, LeaseView, Section };
