import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { refuseUnfinished, unfinishedWork } from '../../../kernel/api/work.js';
import type { Hold } from '../../../kernel/holding/hold.js';
import type { StoreRelease } from '../../../kernel/holding/store-lease.js';
import { asStoreError } from '../../../kernel/store/store-error.js';
import type { LockOwner, LockStore } from '../../../kernel/store/lock-store.js';
import { describeThrown, quote } from '../../../kernel/util/quoted.js';
import { encodeResult } from './encoded-result.js';
import type { ResolvedOnce } from './once-options.js';
import type { ResultStore } from './result-store.js';

/** The end of a run: stores its result with the release of the lock, if the lease was held until then. */
export class ResultRelease implements StoreRelease {
  /** The text to keep; `undefined` if there is none, or it is too large. */
  result: string | undefined;
  /** Set with the lease. */
  hold: Hold | undefined;
  /** `true` if the store answered that the lock was no longer held. */
  isTakenOver = false;
  /** `true` if a command without an answer may have been executed: then the lock is not held because of that. */
  #mayBeDone = false;

  constructor(
    private readonly results: ResultStore,
    private readonly store: LockStore,
    private readonly owner: LockOwner,
    private readonly ttlMs: number,
  ) {}

  /** Also called for a lost lease, and again after a failure. */
  async release(lazily?: boolean): Promise<boolean> {
    const { owner, result, hold } = this;
    const isKept = result !== undefined && hold?.isReleased === true;
    try {
      const wasHeld = await (isKept ? this.results.keep(owner, result, this.ttlMs) : this.store.release(owner, lazily));
      this.isTakenOver ||= !wasHeld && !this.#mayBeDone;
      return wasHeld;
    } catch (error) {
      this.#mayBeDone ||= asStoreError(error).failure === 'unknown';
      throw error;
    }
  }
}

/** Makes the result of work a text to keep. @throws InvalidLockOptionsError if that is not possible */
export function serialized(result: unknown, key: string, { serialize }: Pick<ResolvedOnce, 'serialize'>): string {
  const unfinished = unfinishedWork(result);
  if (unfinished) throw refuseUnfinished(result, unfinished, `once(${quote(key, 60)})`);
  if (result === undefined) return encodeResult(undefined);
  let text: unknown;
  try {
    text = serialize(result);
  } catch (error) {
    throw notSerialized(key, `threw ${describeThrown(error)}`, error);
  }
  if (typeof text !== 'string') throw notSerialized(key, 'returned no text');
  return encodeResult(text);
}

function notSerialized(key: string, why: string, cause?: unknown): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `The work of once(${quote(key, 60)}) has ended, but its result cannot be stored: serialize ${why}. Return plain JSON, ` +
      'or pass serialize and parse that fit the result.',
    'serialize',
    cause === undefined ? undefined : { cause },
  );
}
