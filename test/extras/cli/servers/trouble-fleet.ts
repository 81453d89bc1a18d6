import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { programOf } from '../../../support/process/program.js';
import type { TroubleVerbs } from './trouble-process.js';

const PROGRAM = programOf(new URL('trouble-process.ts', import.meta.url));

/** A process that gets into trouble when it is asked to. */
export class TroubleProcess {
  #asked = 0;

  private constructor(
    readonly child: ChildProcess,
    readonly instanceId: string,
  ) {}

  static async start(url: string, name: string, leaseMs: number): Promise<TroubleProcess> {
    const child = fork(PROGRAM, { execArgv: ['--expose-gc'], env: { ...process.env, NODE_OPTIONS: '' } });
    child.setMaxListeners(100);
    const started = new TroubleProcess(child, `${name}:${child.pid}:abc123`);
    await started.ask('start', url, started.instanceId, leaseMs);
    return started;
  }

  /** Resolves when it is done, which a blocked process is late with. */
  async ask<V extends keyof TroubleVerbs>(verb: V, ...args: Parameters<TroubleVerbs[V]>): Promise<void> {
    const id = ++this.#asked;
    const answered = new Promise<string | undefined>((resolve) => {
      const receive = (message: { id: number; error?: string }): void => {
        if (message.id !== id) return;
        this.child.off('message', receive);
        resolve(message.error);
      };
      this.child.on('message', receive);
    });
    this.child.send({ id, verb, args });
    const error = await answered;
    if (error !== undefined) throw new Error(error);
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}
