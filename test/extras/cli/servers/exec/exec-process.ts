import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { BIN } from '../../run-process.js';

/** `exec` in a process of its own. */
export class ExecProcess {
  /** The output so far, of the command and of `exec`. */
  stdout = '';
  stderr = '';
  /** Its exit code. */
  readonly ended: Promise<number | null>;

  private constructor(readonly child: ChildProcess) {
    child.stdout!.setEncoding('utf8').on('data', (data: string) => (this.stdout += data));
    child.stderr!.setEncoding('utf8').on('data', (data: string) => (this.stderr += data));
    this.ended = once(child, 'close').then(([code]) => code as number | null);
  }

  /**
   * @param args the arguments after `exec`
   * @param env added to the environment of this process
   */
  static start(url: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ExecProcess {
    const child = spawn(process.execPath, [BIN, 'exec', ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: url, LOCK_RESOURCE: '', ...env },
    });
    return new ExecProcess(child);
  }

  /** Resolves when the command or `exec` has printed this. */
  async says(what: string | RegExp, from: 'stdout' | 'stderr' = 'stdout'): Promise<void> {
    const stream = this.child[from]!;
    const hasSaid = (): boolean => (typeof what === 'string' ? this[from].includes(what) : what.test(this[from]));
    while (!hasSaid()) {
      const next = await Promise.race([once(stream, 'data').then(() => 'data'), this.ended.then(() => 'ended')]);
      if (next === 'ended' && !hasSaid()) {
        throw new Error(`exec has ended without ${String(what)}: ${this.stdout}${this.stderr}`);
      }
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** Starts `exec`, and kills what still runs after each test. */
export function useExec(url: () => string): (args: readonly string[], env?: NodeJS.ProcessEnv) => ExecProcess {
  const running: ExecProcess[] = [];
  afterEach(async () => {
    for (const each of running.splice(0)) {
      // Its guard ends the command.
      each.kill('SIGKILL');
      await each.ended;
    }
  });
  return (args, env) => {
    const started = ExecProcess.start(url(), args, env);
    running.push(started);
    return started;
  };
}

/** A command that runs this code in Node. */
export function node(code: string): string[] {
  return ['--', process.execPath, '-e', code];
}

/** A command that runs this in a shell: it starts in a tenth of the time. */
export function shell(script: string): string[] {
  return ['--', 'sh', '-c', script];
}

/** A command that says `ran`. */
export const SAYS_RAN = shell('echo ran');

/** For Node: says its process id, and does not end. */
export const RUNS_ON = "console.log('pid', process.pid); setInterval(() => {}, 1000);";

/** A command that says its process id, and then runs until it is ended. */
export const ENDLESS = shell('echo "pid $$"; exec sleep 3600');

/** The process id that {@link ENDLESS} has said. Its guard knows it, too. */
export async function pidOf(exec: ExecProcess): Promise<number> {
  await exec.says(/pid \d+\n/);
  await untilGuarded(exec);
  return Number(/pid (\d+)/.exec(exec.stdout)![1]);
}

/**
 * Resolves when the guard knows the command that has just said something. `exec` tells it right after the start, and hears
 * signals after that.
 */
export async function untilGuarded(exec: ExecProcess): Promise<void> {
  exec.kill('SIGTSTP');
  await exec.says('Ctrl-Z is ignored', 'stderr');
}

/** A zombie does not run: its parent has not looked yet, or is stopped. */
export function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return /^[^Z]/.test(stdout.trim());
}
