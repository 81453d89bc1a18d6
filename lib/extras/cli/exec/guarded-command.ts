import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Lease } from '../../../kernel/api/lease.js';
import { formatDuration } from '../../../kernel/util/durations.js';
import { describeThrown, quote } from '../../../kernel/util/quoted.js';
import { Guard } from './guard.js';
import { isGroupAlive, signalGroup } from './process-group.js';
import type { PassedSignals } from './passed-signals.js';

/** How a command is run under a lease. */
interface GuardedCommand {
  readonly command: readonly string[];
  readonly lease: Lease;
  readonly leaseMs: number;
  /** How long the command has between SIGTERM and SIGKILL. */
  readonly killAfterMs: number;
  readonly signals: PassedSignals;
  /** Prints to stderr. */
  readonly note: (line: string) => void;
}

/** How a command has ended. */
interface CommandEnd {
  /**
   * Of the command: its exit code, 128 and the number of the signal that ended it, 127 or 126 if it did not start.
   * Not set: it was not started, because the lease was lost.
   */
  readonly code: number | undefined;
  /** Whether the lease ended, or was about to end, before all of the command did. */
  readonly isLost: boolean;
  /** Whether it was asked to end, by a signal to `exec`. */
  readonly isInterrupted: boolean;
}

/** How often it is looked whether the rest of the group still runs. */
const LOOK_MS = 25;
/** Bounds of the interval at which the guard gets the time left on the lease. */
const BEAT_MS = { least: 20, most: 1_000 };
const TOLD_AFTER_MS = 1_000;
/** How much earlier than this process the guard may see that the lease ends. */
const SLACK_MS = 5;

/**
 * Runs a command in a process group of its own, under a lease that is renewed while it runs. Resolves when all processes of
 * the group have ended. When the lease is lost, and also when this process is killed or blocked, the group gets
 * SIGTERM, and SIGKILL at the latest when the lease ends or `killAfterMs` after that.
 *
 * @throws Error when no process can be started
 */
export async function runGuarded(run: GuardedCommand): Promise<CommandEnd> {
  const { lease, signals, killAfterMs, note } = run;
  const guard = new Guard(killAfterMs);
  await guard.start();
  let isLost = false;
  let isOver = false;
  const lose = (line: string): void => {
    if (isLost || isOver) return;
    isLost = true;
    note(`${line} The command gets SIGTERM, and SIGKILL after at most ${formatDuration(killAfterMs)}.`);
  };
  /** The guard has got the same, a little earlier. */
  const look = (slackMs = 0): void => {
    const leftMs = lease.remainingMs();
    if (leftMs > killAfterMs + slackMs) return;
    lose(`The lease of ${quote(lease.resource)} ends in ${formatDuration(leftMs)}, and could not be renewed.`);
  };
  const beat = (): void => {
    if (!lease.isHeld()) return;
    guard.left(lease.remainingMs());
    look();
  };
  const onLoss = (): void => {
    lose(describeThrown(lease.signal.reason));
    guard.stop();
  };
  if (!lease.isHeld()) {
    await guard.done();
    return { code: undefined, isLost: true, isInterrupted: false };
  }
  guard.left(lease.remainingMs());
  const child = start(run);
  if (child.pid === undefined) {
    const code = await failedStart(child, run);
    await guard.done();
    return { code, isLost: false, isInterrupted: false };
  }
  const group = child.pid;
  guard.guards(group);
  const beats = setInterval(beat, Math.min(BEAT_MS.most, Math.max(BEAT_MS.least, run.leaseMs / 20)));
  if (lease.signal.aborted) onLoss();
  else lease.signal.addEventListener('abort', onLoss, { once: true });
  signals.passTo((signal) => signalGroup(group, signal));
  const code = await exitOf(child);
  await untilGroupEnds(group, note);
  // This process may have been stopped since.
  look(SLACK_MS);
  isOver = true;
  clearInterval(beats);
  lease.signal.removeEventListener('abort', onLoss);
  if ((await guard.done()) && !isLost) {
    isLost = true;
    note(
      `exec was blocked and could not renew the lease of ${quote(lease.resource)}, so the command was ended before the lease expired.`,
    );
  }
  return { code, isLost, isInterrupted: signals.hasPassed };
}

function start({ command, lease }: GuardedCommand): ChildProcess {
  const [file, ...args] = command as [string, ...string[]];
  // A group of its own, which can be ended as a whole. So a Ctrl-C of the terminal reaches it only by way of `exec`.
  return spawn(file, args, {
    stdio: 'inherit',
    detached: true,
    env: { ...process.env, LOCK_RESOURCE: lease.resource, LOCK_FENCING_TOKEN: String(lease.fencingToken) },
  });
}

/** As shells have it: 127 where there is no such command, 126 where it cannot be executed. */
async function failedStart(child: ChildProcess, { command, note }: GuardedCommand): Promise<number> {
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => child.once('error', resolve));
  const name = quote(command[0]!);
  if (error.code === 'ENOENT') {
    note(`There is no command ${name}.`);
    return 127;
  }
  note(`The command ${name} cannot be executed: ${error.code ?? error.message}.`);
  return 126;
}

async function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? exitCodeOf(signal!)));
  });
}

/** As shells have it. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + (constants.signals[signal] ?? 0);
}

async function untilGroupEnds(group: number, note: (line: string) => void): Promise<void> {
  const since = performance.now();
  let isTold = false;
  let pauseMs = LOOK_MS;
  while (isGroupAlive(group)) {
    if (!isTold && performance.now() - since > TOLD_AFTER_MS) {
      isTold = true;
      note('The command has ended, but processes that it started still run. The lock is held until they end.');
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(2 * pauseMs, 10 * LOOK_MS);
  }
}
