import { type ChildProcess, spawn } from 'node:child_process';
import { within } from '../../../kernel/util/promises.js';

/** The exit code of a guard that has ended a command. */
const HAS_ENDED_IT = 3;
/** A guard that does not end within this time is not waited for. */
const PATIENCE_MS = 1_000;

/**
 * What the guard runs. It reads lines: "group <pid>", "left <ms>" for what is left of the lease, "stop", "done". It
 * ends the group when little of the lease is left, and when its input ends: then `exec` was killed. It is a text, so
 * that it needs no file: a bundler puts this module anywhere.
 */
const SOURCE = `
const graceMs = Number(process.argv[1]);
let group = 0, text = '', isEnding = false, stop, kill, killAt = Infinity;
const send = (signal) => {
  try {
    if (group > 0) process.kill(-group, signal);
  } catch (error) {
    if (error.code === 'ESRCH') process.exit();
  }
};
const killIn = (ms) => {
  clearTimeout(kill);
  killAt = performance.now() + ms;
  kill = setTimeout(send, ms, 'SIGKILL');
};
const end = () => {
  isEnding = true;
  process.exitCode = ${HAS_ENDED_IT};
  clearTimeout(stop);
  send('SIGTERM');
  send('SIGCONT');
};
const endSoon = () => {
  end();
  killIn(Math.max(0, Math.min(graceMs, killAt - performance.now())));
};
const hear = ([word, value]) => {
  if (word === 'group') {
    group = Number(value);
    // exec was blocked while it started the command.
    if (isEnding) endSoon();
  }
  if (word === 'left' && !isEnding) {
    clearTimeout(stop);
    stop = setTimeout(end, Number(value) - graceMs);
    killIn(Number(value));
  }
  if (word === 'stop') endSoon();
  if (word === 'done') process.exit();
};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => {});
process.stdin.setEncoding('utf8').on('data', (data) => {
  const lines = (text + data).split('\\n');
  text = lines.pop();
  for (const line of lines) hear(line.split(' '));
}).on('error', () => {}).on('close', () => {
  if (group === 0) process.exit();
  send(0);
  process.stderr.write('exec was killed, so its command gets SIGTERM, and SIGKILL after at most ' + graceMs + ' ms.\\n', () => {});
  endSoon();
  setInterval(() => {
    send(0);
    if (performance.now() > killAt + 1000) process.exit();
  }, 50);
});
process.stderr.on('error', () => {});
`;

/**
 * A process beside `exec` that ends the command when `exec` no longer can: because it was killed by SIGKILL, or stands
 * still while its lease ends. It is in a session of its own, so that no terminal stops it.
 */
export class Guard {
  #process: ChildProcess | undefined;
  #group: number | undefined;
  /** Resolves when the present process has ended. */
  #exited: Promise<void> | undefined;
  #hasEndedIt = false;

  /** @param graceMs how long before the end of the lease, or after it was lost, the command gets SIGTERM first */
  constructor(private readonly graceMs: number) {}

  /** Starts it, before there is a command to guard. @throws Error when no process can be started */
  async start(): Promise<void> {
    const started = this.#spawn();
    await new Promise<void>((resolve, reject) => started.once('spawn', resolve).once('error', reject));
    started.on('error', () => {});
  }

  guards(group: number): void {
    this.#group = group;
    this.#tell(`group ${group}`);
  }

  /** How much is left of the lease. */
  left(ms: number): void {
    // It was killed itself.
    if (this.#process?.exitCode !== null || this.#process.signalCode !== null) {
      this.#spawn().on('error', () => {});
      if (this.#group !== undefined) this.#tell(`group ${this.#group}`);
    }
    this.#tell(`left ${Math.max(0, Math.floor(ms))}`);
  }

  /** The command gets SIGTERM now, and SIGKILL later. */
  stop(): void {
    this.#tell('stop');
  }

  /** There is nothing to guard any more. @returns whether it has ended the command, or was about to */
  async done(): Promise<boolean> {
    this.#tell('done');
    this.#process?.stdin?.end();
    if (this.#exited) await within(PATIENCE_MS, this.#exited);
    return this.#hasEndedIt;
  }

  #spawn(): ChildProcess {
    const guard = spawn(process.execPath, ['-e', SOURCE, String(this.graceMs)], {
      // No NODE_OPTIONS, and no secrets.
      env: {},
      detached: true,
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    guard.stdin!.on('error', () => {});
    guard.unref();
    this.#process = guard;
    this.#exited = new Promise((resolve) => {
      guard
        .once('error', () => resolve())
        .once('exit', (code) => {
          this.#hasEndedIt ||= code === HAS_ENDED_IT;
          resolve();
        });
    });
    return guard;
  }

  #tell(line: string): void {
    if (this.#process?.stdin?.writable) this.#process.stdin.write(`${line}\n`);
  }
}
