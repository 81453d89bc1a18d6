import { basename } from 'node:path';
import { LockUnavailableError } from '../../../kernel/api/errors.js';
import { heldBy } from '../../../kernel/api/holder.js';
import { LOCK_DEFAULTS, LOCK_OPTIONS, RUN_LEASE_MS } from '../../../kernel/api/lock-options.js';
import type { Acquired } from '../../../kernel/lease/composite-lease.js';
import type { Hold } from '../../../kernel/holding/hold.js';
import { describeThrown, quote } from '../../../kernel/util/quoted.js';
import { formatDuration, longDuration } from '../../../kernel/util/durations.js';
import { type CommandContext, defineCommand } from '../frame/command.js';
import { EXIT_CODES, UsageError } from '../frame/exit-codes.js';
import { RESTART_QUARANTINE } from '../frame/connection.js';
import { choiceOption, durationOption, textOption } from '../frame/options.js';
import type { Session } from '../frame/session.js';
import { exitCodeOf, runGuarded } from './guarded-command.js';
import { PassedSignals } from './passed-signals.js';
import { OnceMarker } from './once-marker.js';
import { showWait } from './wait-progress.js';
import { LockBusyError, LockTimeoutError } from '../../../kernel/api/busy-errors.js';

const WAIT_MS = 10 * 60_000;
const KILL_AFTER_MS = 10_000;
const DAY_MS = 24 * 60 * 60_000;
const KEEP_MS = { least: 1_000, default: 7 * DAY_MS, most: 30 * DAY_MS };
/** How long Redis may be away, within `--wait`, and take to connect: a fail-over takes less. */
const UNAVAILABLE_MS = 30_000;

const OPTIONS = {
  wait: durationOption('How long to wait for the lock. Default: 10m, or 0s with --if-busy.'),
  lease: durationOption('The length of the lease: how long the lock stays held if this process dies. Default: 30s.'),
  mode: choiceOption(['exclusive', 'read', 'write'], 'The mode of the lock. Default: exclusive.'),
  'if-busy': choiceOption(
    ['fail', 'skip'],
    'What to do if the lock is not free in time: fail exits with 4, skip with 0.',
  ),
  once: textOption(
    'key',
    'Skips the command if a run with this key, such as the tag of the release, has already succeeded.',
  ),
  keep: durationOption('How long Redis remembers the success of a --once run: 1s to 30d. Default: 7d.'),
  [RESTART_QUARANTINE]: durationOption(
    'The restartQuarantineMs of your applications. Without it, exec acquires locks even if Redis has just restarted.',
  ),
  'kill-after': durationOption(
    'How long the command has between SIGTERM and SIGKILL, at most half of the lease. Default: a third of the lease, but at most 10s.',
  ),
} as const;

interface ExecRequest {
  readonly resource: string;
  readonly command: readonly string[];
  readonly mode: 'exclusive' | 'read' | 'write';
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly killAfterMs: number;
  readonly isSkipped: boolean;
  readonly once: { readonly key: string; readonly keepMs: number } | undefined;
}

type Context = CommandContext<typeof OPTIONS>;

export const exec = defineCommand({
  name: 'exec',
  summary: 'Holds a lock while it runs your command: like flock, but for many machines.',
  args: [{ name: 'resource', isRequired: true }],
  rest: 'command …',
  options: OPTIONS,
  details: [
    'The lease is renewed while the command, or a process in its process group, is running.',
    'The command gets LOCK_RESOURCE and LOCK_FENCING_TOKEN in its environment. exec forwards SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 to the command.',
    'If the lease cannot be renewed, or exec is killed, the command gets SIGTERM, and SIGKILL after --kill-after or when the lease ends.',
    'Exits with the exit code of the command; with 128 plus the number of the signal that ended it; or with 127 if there is no such command.',
    'Without --prefix, uses the prefix from --config, or `lock`, and detects none: all runs must use the same one. --timeout is 30s by default.',
  ],
  examples: [
    'exec migrate --once "$RELEASE" -- npx prisma migrate deploy',
    'exec nightly-report --if-busy skip -- ./report.sh',
  ],
  isWriting: true,
  isPrefixStated: true,
  timeoutMs: UNAVAILABLE_MS,
  handlesSignals: true,
  run: runExec,
});

async function runExec(context: Context): Promise<number> {
  const request = readRequest(context);
  const { output } = context;
  const note = (line: string): void => output.note(line);
  if (process.env['LOCK_RESOURCE'] === request.resource) {
    note(
      `The exec that started this one already holds ${quote(request.resource)}, and keeps it until this one ends. Unless both use --mode read, remove one of them.`,
    );
  }
  const signals = new PassedSignals(note);
  try {
    return await runLocked(request, context, signals);
  } catch (error) {
    if (signals.endedBy) return exitCodeOf(signals.endedBy);
    throw error;
  } finally {
    signals.close();
  }
}

/** @throws UsageError */
function readRequest({ args, rest, options }: Context): ExecRequest {
  const { once, keep, mode = 'exclusive', lease: leaseMs = RUN_LEASE_MS } = options;
  const ifBusy = options['if-busy'];
  LOCK_OPTIONS.options.leaseMs.check('--lease', leaseMs);
  const killAfterMs = options['kill-after'] ?? Math.min(KILL_AFTER_MS, Math.floor(leaseMs / 3));
  if (process.platform === 'win32')
    throw new UsageError('exec needs process groups, which Windows does not have. Use WSL.');
  if (once !== undefined && mode === 'read') {
    throw new UsageError('--once needs --mode exclusive or write: readers would run side by side.');
  }
  if (once !== undefined && !/^[^\s\p{C}]{1,200}$/u.test(once)) {
    throw new UsageError(
      '--once must be 1 to 200 characters without white space. If you passed a shell variable, check that it is set.',
    );
  }
  if (once === undefined && keep !== undefined)
    throw new UsageError('--keep needs --once: it sets how long --once is remembered.');
  if (keep !== undefined && (keep < KEEP_MS.least || keep > KEEP_MS.most)) {
    throw new UsageError('--keep must be 1s to 30d.');
  }
  const quarantineMs = options[RESTART_QUARANTINE];
  if (quarantineMs !== undefined && leaseMs > quarantineMs) {
    throw new UsageError(
      `--lease may be at most --restart-quarantine (${formatDuration(quarantineMs)}): otherwise Redis could restart without its data, and grant the lock while it is still held.`,
    );
  }
  if (killAfterMs > leaseMs / 2) {
    throw new UsageError(
      `--kill-after may be at most half of the lease (${formatDuration(leaseMs / 2)}): the command has to end before others get the lock. Set a longer --lease.`,
    );
  }
  return {
    resource: args[0]!,
    command: rest,
    mode,
    waitMs: options.wait ?? (ifBusy === undefined ? WAIT_MS : 0),
    leaseMs,
    killAfterMs,
    isSkipped: ifBusy === 'skip',
    once: once === undefined ? undefined : { key: once, keepMs: keep ?? KEEP_MS.default },
  };
}

async function runLocked(request: ExecRequest, context: Context, signals: PassedSignals): Promise<number> {
  const { resource, once } = request;
  const { output } = context;
  const session = await Promise.race([context.session(), signals.ended]);
  const marker = once && new OnceMarker(session.store, resource, once.key);
  const isDone = async (): Promise<boolean> => {
    const agoMs = await marker?.doneAgoMs(UNAVAILABLE_MS);
    if (agoMs === undefined || agoMs === null) return false;
    output.note(
      `${quote(resource)} already ran ${longDuration(agoMs)} ago with --once ${quote(once!.key)}. The command was not run again.`,
    );
    return true;
  };
  if (await isDone()) return EXIT_CODES.done.code;
  const lease = await acquire(request, session, context, signals);
  if (lease === undefined) return request.isSkipped ? EXIT_CODES.done.code : EXIT_CODES.busy.code;
  try {
    // Another runner may have succeeded since.
    if (await isDone()) return EXIT_CODES.done.code;
    if (signals.endedBy) return exitCodeOf(signals.endedBy);
    return await runHeld(request, lease, marker, signals, (line) => output.note(line));
  } finally {
    const isToEnd = lease.isHeld();
    await lease.release().catch((error: unknown) => isToEnd && output.note(describeThrown(error)));
  }
}

/** Resolves to `undefined` when the lock was not free in time. @throws LockError */
async function acquire(
  { resource, command, mode, waitMs, leaseMs, isSkipped }: ExecRequest,
  session: Session,
  context: Context,
  signals: PassedSignals,
): Promise<Acquired | undefined> {
  const endProgress = showWait(session, resource, waitMs, context);
  try {
    return await session.client.acquire(resource, {
      mode,
      waitMs,
      leaseMs,
      unavailableMs: Math.min(waitMs, UNAVAILABLE_MS),
      // Not --timeout: the lease needs several attempts in its time.
      attemptTimeoutMs: LOCK_DEFAULTS.attemptTimeoutMs,
      signal: signals.ending,
      group: 'exec',
      // Arguments may be secrets.
      label: { group: 'exec', command: basename(command[0]!).slice(0, 50) },
    });
  } catch (error) {
    if (error instanceof LockUnavailableError) {
      // Without unavailableMs, which is no option of the command line.
      throw new LockUnavailableError(resource, error.operation, error.lastAttempt, error.cause);
    }
    if (!(error instanceof LockBusyError)) throw error;
    endProgress();
    context.output.note(describeBusy(error, isSkipped));
    return undefined;
  } finally {
    endProgress();
  }
}

/** The message of the error, in the options of the command line. */
function describeBusy(error: LockBusyError, isSkipped: boolean): string {
  const { resource, holderCount } = error;
  const what = holderCount > 0 ? heldBy(error) : 'is not free';
  const waited = error instanceof LockTimeoutError ? `, and was not free within ${formatDuration(error.waitedMs)}` : '';
  const advice = isSkipped ? 'The command was not run.' : 'Set a longer --wait, or try again later.';
  return `${quote(resource)} ${what}${waited}. ${advice}`;
}

async function runHeld(
  { resource, command, leaseMs, killAfterMs, once }: ExecRequest,
  lease: Acquired,
  marker: OnceMarker | undefined,
  signals: PassedSignals,
  note: (line: string) => void,
): Promise<number> {
  const { code, isLost, isInterrupted } = await runGuarded({ command, lease, leaseMs, killAfterMs, signals, note });
  if (isLost || code === undefined) {
    const what =
      code === undefined
        ? 'started, so the command was not run'
        : `ended (exit code ${code}): another process may have worked at the same time`;
    note(`The lease of ${quote(resource)} was lost before the command ${what}.`);
    return EXIT_CODES.lost.code;
  }
  if (marker === undefined || code !== 0) return code;
  if (isInterrupted) {
    note(
      `A signal asked the command to end, so --once ${quote(once!.key)} does not count as done, and the next exec runs the command again.`,
    );
    return code;
  }
  try {
    const [{ owner }] = lease.holds as [Hold];
    if (!(await marker.set(owner.id, once!.keepMs, lease.remainingMs()))) {
      note(
        `The lease of ${quote(resource)} was lost while the command ended, so --once ${quote(once!.key)} does not count as done.`,
      );
      return EXIT_CODES.lost.code;
    }
  } catch (error) {
    note(
      `The command has succeeded, but that may not be recorded for --once ${quote(once!.key)}, so the next exec may run it again: ${describeThrown(error)}`,
    );
  }
  return code;
}
