import type { Logger } from '@nestjs/common';
import { isMainThread } from 'node:worker_threads';
import { formatDuration } from '../../core/util/durations.js';

/** How long after the start it is looked at: `enableShutdownHooks()` may be called after `listen()`. */
const AFTER_MS = 1_000;

/**
 * Logs once that the process does not listen for the signal by which it will be stopped. Nest has no way to ask whether
 * shutdown hooks are enabled; but without any listener, Node ends the process, and Nest closes nothing.
 */
export function hintAtShutdownHooks(logger: Logger, leaseMs: number, closing: AbortSignal): void {
  // Windows has no such signal, and a worker gets none.
  if (process.platform === 'win32' || !isMainThread) return;
  const look = (): void => {
    if (process.listenerCount('SIGTERM') > 0) return;
    logger.log(
      `No code listens for SIGTERM, so that signal will end this process without releasing its locks. They stay ` +
        `taken for up to ${formatDuration(leaseMs)} (leaseMs). Call app.enableShutdownHooks(). ` +
        (isServer() ? '' : 'When its work is done, call app.close(): connections to Redis keep the process alive. ') +
        `See docs/guide/getting-started.md#development.`,
    );
  };
  if (closing.aborted) return;
  const timer = setTimeout(look, AFTER_MS).unref();
  closing.addEventListener('abort', () => clearTimeout(timer), { once: true });
}

/** Whether the process listens on a port. If not, it may be a script that waits for its end in vain. */
function isServer(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(TCP|Pipe)ServerWrap$/.test(name));
}
