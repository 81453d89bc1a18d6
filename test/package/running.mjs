import { setTimeout as sleep } from 'node:timers/promises';
import { HANGS_MS, signalGroup, startGroup } from './program.mjs';

/** Log lines that a busy machine adds. No lease is lost by it. */
const BUSY_MACHINE = /^.*\b(?:The event loop was blocked for|the event loop was blocked \d+ more times?).*\n/gm;

/** The output of an application, wherever it runs. */
export function withoutBusyMachine(output) {
  return output.replace(BUSY_MACHINE, '');
}

/** A program with its children in a group of its own, as in a terminal: Ctrl-C reaches all of them. */
export class Running {
  output = '';
  #pid;
  #ended;

  constructor(command, args, options) {
    const child = startGroup(command, args, options);
    this.#pid = child.pid;
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (this.output += chunk));
    this.#ended = new Promise((resolve) => child.on('error', resolve).on('close', resolve));
  }

  /** Waits until it prints this. */
  async prints(pattern) {
    const deadline = Date.now() + HANGS_MS;
    const hasEnded = this.#ended.then(() => true);
    while (!pattern.test(this.output)) {
      if (Date.now() > deadline) throw new Error(`${pattern} was not printed in ${HANGS_MS} ms:\n${this.output}`);
      if ((await Promise.race([hasEnded, sleep(20)])) && !pattern.test(this.output)) {
        throw new Error(`It ended before it printed ${pattern}:\n${this.output}`);
      }
    }
  }

  /** Waits until everything has ended by itself. */
  async ends(after = '') {
    const ended = await Promise.race([this.#ended.then(() => true), sleep(HANGS_MS, false, { ref: false })]);
    if (!ended) throw new Error(`It has not ended ${HANGS_MS} ms${after}:\n${this.output}`);
  }

  /** Presses Ctrl-C, and waits until everything has ended by itself. */
  async interrupt() {
    signalGroup(this.#pid, 'SIGINT');
    await this.ends(' after Ctrl-C');
  }

  kill() {
    signalGroup(this.#pid, 'SIGKILL');
  }
}
