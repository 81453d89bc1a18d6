import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface PipedServerOptions {
  /** The command, run without a shell. */
  readonly command: readonly [program: string, ...args: string[]];
  /** Its working folder, which has its log and is removed at the end. */
  readonly folder: string;
  /** The signal to end it. It is killed 2 s later. */
  readonly signal: 'QUIT' | 'TERM';
  /** Whose process it is. undefined: this process's user. */
  readonly user?: { readonly uid: number; readonly gid: number };
}

/**
 * A server that ends with the process of the test. Its standard input is a pipe to that process. The pipe closes when the process
 * ends, whatever ended it, and then the server is ended and its folder removed.
 */
export class PipedServer {
  readonly #child: ChildProcess;
  readonly #logFile: string;
  readonly #exited: Promise<unknown>;

  constructor({ command, folder, signal, user }: PipedServerOptions) {
    this.#logFile = join(folder, 'log');
    const log = openSync(this.#logFile, 'w');
    this.#child = spawn('sh', ['-c', UNTIL_THE_PIPE_CLOSES, 'sh', signal, folder, ...command], {
      stdio: ['pipe', log, log],
      cwd: folder,
      detached: true, // Ctrl-C in a terminal goes to the whole group
      ...user,
    });
    closeSync(log);
    this.#exited = once(this.#child, 'exit');
  }

  get log(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  async stop(): Promise<void> {
    this.#child.stdin!.end();
    await this.#exited;
  }
}

const UNTIL_THE_PIPE_CLOSES = `
  signal="$1"; folder="$2"; shift 2
  "$@" < /dev/null & server=$!
  cat > /dev/null
  kill -$signal $server; for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 $server || break; sleep 0.2; done
  kill -KILL $server; wait $server; rm -rf "$folder"`;
