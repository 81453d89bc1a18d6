import { brand } from '../../../kernel/util/objects.js';
import { escapeText } from '../../../kernel/util/quoted.js';
import { LockError, quoteResource } from '../../../kernel/api/errors.js';

/**
 * `fence.guard` rejected a write, because a later holder has already sent a larger token. In Redis, none of the guarded commands has run.
 *
 * @remedy Let the database transaction roll back, and discard the result. To retry, acquire the lock again and start
 *   from the current data.
 */
export class StaleFencingTokenError extends LockError {
  override readonly code = 'STALE_FENCING_TOKEN';

  constructor(
    /** The key of the guard; in a database, the locked resource. */
    guard: string,
    /** The rejected token. */
    readonly token: number,
    /** The largest token that the guard has accepted. */
    readonly newestToken: number,
    consequence = 'Nothing was executed',
  ) {
    super(
      `The write under the guard ${quoteResource(guard)} was refused: its fencing token ${token} is stale, because a later ` +
        `holder has used ${newestToken}. ${consequence}. Discard this result. To retry, acquire the lock ` +
        `again and start from the current data.`,
      guard,
    );
  }
}

/**
 * A command under `fence.guard` failed in Redis. The commands before it have run; the commands after it have not.
 *
 * @remedy Fix the command, and send all commands again with the same token. Some then run twice, so use commands
 *   that you can repeat (`SET`, not `INCR`).
 */
export class FencedCommandError extends LockError {
  override readonly code = 'FENCED_COMMAND_FAILED';

  /** @internal */
  constructor(
    /** The key of the guard. */
    guard: string,
    /** The index of the command, from 0. */
    readonly index: number,
    /** The name of the command, such as `RPUSH`. */
    readonly command: string,
    /** The error that Redis replied with. */
    readonly reason: string,
  ) {
    super(
      `Command ${index + 1} (${command}) under the guard ${quoteResource(guard)} failed: ${escapeText(reason)}. ` +
        `Redis does not roll back: the commands before it were executed; the commands after it were not. ` +
        `Fix the command, and send all commands again with the same token.`,
      guard,
    );
  }
}

brand({ StaleFencingTokenError, FencedCommandError });
