import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const groups = new Set();
process.once('exit', () => groups.forEach((pid) => signalGroup(pid, 'SIGKILL')));

/** A program with its children in a group of its own, as in a terminal: Ctrl-C reaches all of them. */
export class Running {
  output = '';
  #pid;
  #ended;

  constructor(command, args, { cwd, env = {} }) {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#pid = child.pid;
    groups.add(child.pid);
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (this.output += chunk));
    // At "close", no process of the group has the pipes any more.
    this.#ended = new Promise((resolve) => child.on('error', resolve).on('close', resolve));
    void this.#ended.then(() => groups.delete(child.pid));
  }

  /** Waits until it prints this. */
  async prints(pattern, timeoutMs) {
    const deadline = Date.now() + timeoutMs;
    const hasEnded = this.#ended.then(() => true);
    while (!pattern.test(this.output)) {
      if (Date.now() > deadline) throw new Error(`${pattern} was not printed in ${timeoutMs} ms:\n${this.output}`);
      if ((await Promise.race([hasEnded, sleep(20)])) && !pattern.test(this.output)) {
        throw new Error(`It ended before it printed ${pattern}:\n${this.output}`);
      }
    }
  }

  /** Presses Ctrl-C, and waits until everything has ended by itself. */
  async interrupt(timeoutMs) {
    signalGroup(this.#pid, 'SIGINT');
    const ended = await Promise.race([this.#ended.then(() => true), sleep(timeoutMs, false)]);
    if (!ended) throw new Error(`It has not ended ${timeoutMs} ms after Ctrl-C:\n${this.output}`);
  }

  kill() {
    signalGroup(this.#pid, 'SIGKILL');
  }
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
