import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { programOf } from '../../../test/support/process/program.js';

const main = programOf(new URL('witness-process-main.ts', import.meta.url));

/** The witness, as the harness sees it. */
export class WitnessProcess implements AsyncDisposable {
  /** Resolves if it ends before it is stopped. */
  readonly ended: Promise<void>;

  private constructor(private readonly child: ChildProcess) {
    this.ended = once(child, 'exit').then(() => undefined);
  }

  static async start(socket: string, history: string): Promise<WitnessProcess> {
    const child = fork(main, [socket, history], { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } });
    await once(child, 'message');
    return new WitnessProcess(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.connected) this.child.disconnect();
    await this.ended;
  }
}
