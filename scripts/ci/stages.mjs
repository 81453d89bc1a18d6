// The stages of a long run: some one after the other, some beside each other.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { inForeground } from '../command.mjs';
import { root } from '../setup.mjs';

/** So that what works in the background has the time in which those in front wait. */
const BEHIND = 10;
/** Lines of a stage that failed, as they are shown again at the end of the run: a log is often read, and sometimes kept, from its end. */
const SHOWN_AGAIN = 60;

export class Stages {
  #from = performance.now();
  /**
   * `code`: none where it was stopped; `output`: of what ran beside others.
   *
   * @type {Map<string, { code: number | undefined, seconds: number, output?: string }>}
   */
  #results = new Map();
  /** @type {Set<import('node:child_process').ChildProcess>} */
  #besideOthers = new Set();
  #isStopped = false;

  #seconds() {
    return Math.round((performance.now() - this.#from) / 1_000);
  }

  get failed() {
    return [...this.#results].filter(([, { code }]) => code !== 0 && code !== undefined).map(([name]) => name);
  }

  /** Prints what the command prints while it runs. */
  front(name, command, args, options) {
    console.log(`\n=== ${name} (${this.#seconds()} s)`);
    return this.#noted(name, async () => ({ code: await inForeground(command, args, { cwd: root, ...options }) }));
  }

  /**
   * Runs a command beside others. What it prints is shown when it has ended, so that they do not speak at once.
   *
   * @returns {Promise<boolean>} whether it passed
   */
  async beside(name, command, args, options) {
    const { code, seconds, output } = await this.#noted(name, async () => {
      const child = spawn(command, args, { cwd: root, ...options, stdio: ['ignore', 'pipe', 'pipe'] });
      const said = [];
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => said.push(chunk));
      this.#besideOthers.add(child);
      try {
        const [exit] = await once(child, 'close');
        return { code: this.#isStopped ? undefined : (exit ?? 1), output: Buffer.concat(said).toString() };
      } finally {
        this.#besideOthers.delete(child);
      }
    });
    console.log(`\n=== ${name}: ${inWord(code)} after ${seconds} s (${this.#seconds()} s)\n${output ?? ''}`);
    return code === 0;
  }

  /** The same, with the time that others leave. */
  behind(name, command, args, options) {
    return this.beside(name, 'nice', ['-n', BEHIND, command, ...args].map(String), options);
  }

  /** Ends what runs beside others, and says of it that it was stopped. */
  stop() {
    this.#isStopped = true;
    for (const child of this.#besideOthers) child.kill();
  }

  /** @param run runs a command, and resolves to its exit code and, where that is kept, to its output */
  async #noted(name, run) {
    const from = performance.now();
    const ended = await run().catch((error) => {
      console.error(`${name}: ${error.message}`);
      return { code: 1 };
    });
    const result = { ...ended, seconds: Math.round((performance.now() - from) / 1_000) };
    this.#results.set(name, result);
    return result;
  }

  /** A line for each stage; before them, the last lines of those that failed beside others. */
  summary() {
    const said = this.failed.flatMap((name) => {
      const { output } = this.#results.get(name);
      return output
        ? [`=== ${name} failed. Its last lines:`, output.trimEnd().split('\n').slice(-SHOWN_AGAIN).join('\n'), '']
        : [];
    });
    const lines = [...this.#results].map(([name, { code, seconds }]) => `${name}: ${inWord(code)} (${seconds} s)`);
    return [...said, ...lines, `all: ${this.failed.length === 0 ? 'passed' : 'FAILED'} (${this.#seconds()} s)`].join(
      '\n',
    );
  }
}

function inWord(code) {
  if (code === undefined) return 'stopped';
  return code === 0 ? 'passed' : 'FAILED';
}
