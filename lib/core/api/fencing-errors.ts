import { LockError, quoteResource } from './errors.js';

/**
 * `fence.guard` refused a write: a later holder has come with a larger token. Nothing was executed.
 *
 * @remedy Drop the result. To try again, acquire the lock anew and start from what is stored now.
 */
export class StaleFencingTokenError extends LockError {
  override readonly code = 'STALE_FENCING_TOKEN';

  constructor(
    /** The key of the guard. */
    guard: string,
    /** The token that came too late. */
    readonly token: number,
    /** The largest token that was accepted under the guard. */
    readonly newestToken: number,
  ) {
    super(
      `The write under the guard ${quoteResource(guard)} was refused: its fencing token ${token} is stale, a later ` +
        `holder has come with ${newestToken}. Nothing was executed. Drop this result; to try again, acquire the lock ` +
        `anew and start from what is stored now.`,
      guard,
    );
  }
}

/**
 * A command under `fence.guard` failed in Redis. The commands before it were executed, those after it were not.
 *
 * @remedy Correct the command, and write all of them again with the same token.
 */
export class FencedCommandError extends LockError {
  override readonly code = 'FENCED_COMMAND_FAILED';

  constructor(
    /** The key of the guard. */
    guard: string,
    /** Which of the commands it was, from 0. */
    readonly index: number,
    /** Its name, such as `RPUSH`. */
    readonly command: string,
    /** What Redis said. */
    readonly reason: string,
  ) {
    super(
      `Command ${index + 1} (${command}) under the guard ${quoteResource(guard)} failed: ${reason}. ` +
        `Redis does not roll back: the commands before it were executed, those after it were not. ` +
        `Correct the command, and write all of them again with the same token.`,
      guard,
    );
  }
}
