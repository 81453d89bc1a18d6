import { setTimeout as sleep } from 'node:timers/promises';
import { signalGroup, startGroup } from './program.mjs';

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

  /** Waits until everything has ended by itself. */
  async ends(timeoutMs) {
    const ended = await Promise.race([this.#ended.then(() => true), sleep(timeoutMs, false, { ref: false })]);
    if (!ended) throw new Error(`It has not ended after ${timeoutMs} ms:\n${this.output}`);
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
