import { describeHolders, MAX_NAMED_HOLDERS } from '../../../kernel/api/holder.js';
import type { LockState } from '../../../kernel/store/lock-state.js';
import { formatDuration } from '../../../kernel/util/durations.js';
import { count } from '../../../kernel/util/plurals.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { Output } from '../frame/output.js';
import type { Session } from '../frame/session.js';
import type { Terminal } from '../frame/terminal.js';

const LOOK_MS = 1_000;
/** How often a log gets a line. */
const LOG_MS = 60_000;

/**
 * Shows which process is waited for: on a terminal in one line that changes, elsewhere once a minute.
 *
 * @returns ends it
 */
export function showWait(
  { client, store }: Pick<Session, 'client' | 'store'>,
  resource: string,
  waitMs: number,
  { output, terminal }: { readonly output: Output; readonly terminal: Terminal },
): () => void {
  const since = performance.now();
  let isOver = false;
  let logAt = 0;
  let isAsking = false;
  const tell = (state: LockState): void => {
    const waitedMs = performance.now() - since;
    const line = describeWait(state, store.instanceId, waitedMs, waitMs);
    terminal.progress(line);
    if (process.stderr.isTTY || waitedMs < logAt) return;
    logAt = waitedMs + LOG_MS;
    output.note(line);
  };
  const look = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    try {
      const state = await client.inspect(resource);
      if (!isOver) tell(state);
    } catch {
      // The error of the wait has the reason, when it ends.
    } finally {
      isAsking = false;
    }
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  return () => {
    isOver = true;
    clearInterval(timer);
    terminal.endProgress();
  };
}

/** `Waiting for "migrate" (12 s, at most 10 min): held by web-3:71 for 34 s, 2 waiters ahead.` */
export function describeWait(
  { resource, holders, waiters }: LockState,
  instanceId: string,
  waitedMs: number,
  waitMs: number,
): string {
  const limit = waitMs === Infinity ? '' : `, at most ${formatDuration(waitMs)}`;
  const shown = holders.slice(0, MAX_NAMED_HOLDERS);
  const held =
    shown.length === 0 ? '' : `: held by ${describeHolders({ holders: shown, holderCount: holders.length })}`;
  const before = waiters.findIndex((each) => each.instanceId === instanceId);
  const place = before > 0 ? `, ${count(before, 'waiter')} ahead` : '';
  return `Waiting for ${quote(resource)} (${formatDuration(waitedMs)}${limit})${held}${place}.`;
}
