import type { StoreRelease } from '../holding/store-lease.js';
import type { JobStore, RunEnd } from '../store/job-store.js';
import type { LockOwner } from '../store/lock-store.js';
import { escapeLines } from '../util/quoted.js';

const MOST_BYTES = { name: 100, code: 100, message: 200 };

/** How one run has ended so far. The command that releases the lock of the job tells it to the store. */
export class RunEnding implements StoreRelease {
  #outcome: RunEnd['outcome'] = 'none';
  #error: Pick<RunEnd, 'errorName' | 'errorCode' | 'errorMessage'> | undefined;

  constructor(
    private readonly jobs: JobStore,
    private readonly owner: LockOwner,
    private readonly fencingToken: number,
    /** Whether the message of an error is told. */
    private readonly withMessage: boolean,
  ) {}

  /** The work is about to be called, under a lease that is held. */
  begins(): void {
    this.#outcome = 'lost';
  }

  /** The work has thrown. */
  failedWith(error: unknown): void {
    this.#error = describe(error, this.withMessage);
  }

  endedAs(outcome: 'ok' | 'error' | 'lost'): void {
    this.#outcome = outcome;
  }

  release(lazily?: boolean): Promise<boolean> {
    const { owner, fencingToken } = this;
    return this.jobs.end(owner, { run: { fencingToken, outcome: this.#outcome, ...this.#error } }, lazily);
  }
}

/** What an error says of itself. It is the user's, and may be anything. */
function describe(error: unknown, withMessage: boolean): Pick<RunEnd, 'errorName' | 'errorCode' | 'errorMessage'> {
  return {
    errorName: read(() => (error instanceof Error ? error.name : typeof error), MOST_BYTES.name),
    errorCode: read(() => (error as { readonly code?: unknown } | null | undefined)?.code, MOST_BYTES.code),
    ...(withMessage && {
      errorMessage: read(() => (error instanceof Error ? error.message : error), MOST_BYTES.message),
    }),
  };
}

function read(property: () => unknown, bytes: number): string | undefined {
  try {
    const value = property();
    if (typeof value !== 'string' && typeof value !== 'number') return undefined;
    const text = String(value);
    return text === '' ? undefined : cutToBytes(escapeLines(text.slice(0, 2 * bytes)).replaceAll('\n', '\\n'), bytes);
  } catch {
    // A getter that throws.
    return undefined;
  }
}

/** Cuts a text to so many bytes of UTF-8, and not inside of a character. */
function cutToBytes(text: string, bytes: number): string {
  let length = 0;
  let cut = '';
  for (const character of text) {
    length += Buffer.byteLength(character);
    if (length > bytes) break;
    cut += character;
  }
  return cut;
}
