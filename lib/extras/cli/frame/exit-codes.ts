import { InvalidLockOptionsError, LockUnavailableError } from '../../../kernel/api/errors.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';
import { describeThrown } from '../../../kernel/util/quoted.js';
import { LockBusyError } from '../../../kernel/api/busy-errors.js';

/** What the exit codes say, as the help and the reference list them. */
export const EXIT_CODES = {
  done: { code: 0, summary: 'The command succeeded.' },
  refused: { code: 1, summary: 'Nothing was found, the change was rejected, or `doctor` has a warning.' },
  usage: { code: 2, summary: 'The command line is wrong, or a confirmation is missing.' },
  redis: { code: 3, summary: 'Redis cannot be reached, or your Redis user lacks a permission.' },
  busy: { code: 4, summary: 'The lock is held by another process.' },
  partial: { code: 5, summary: 'The output is incomplete. stderr lists what is missing.' },
  lost: { code: 6, summary: '`exec` lost its lease while your command was running.' },
  broken: { code: 7, summary: '`doctor --try` saw a broken guarantee, such as two holders at once.' },
} as const;

export type ExitName = keyof typeof EXIT_CODES;

/** Ends the command line with a message on stderr. */
export class CliError extends Error {
  constructor(
    readonly exit: ExitName,
    message: string,
  ) {
    super(message);
  }
}

/** The command line is wrong. The message shows how to write it. */
export class UsageError extends CliError {
  constructor(message: string) {
    super('usage', message);
  }
}

/** What the command line says of an error, and its exit code. */
export function asCliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  const message = describeThrown(error);
  if (error instanceof InvalidLockOptionsError) return new CliError('usage', message);
  if (error instanceof LockUnavailableError || error instanceof LockStoreError) return new CliError('redis', message);
  if (error instanceof LockBusyError) return new CliError('busy', message);
  return new CliError('refused', message);
}
