import { LockUnavailableError } from '../../../kernel/api/errors.js';
import { LOCK_DEFAULTS } from '../../../kernel/api/lock-options.js';
import { askUntil, RefusedCommands } from '../../../kernel/store/ask-until.js';
import { Alarms } from '../../../kernel/util/alarms.js';
import { backoff, SYSTEM_CLOCK } from '../../../kernel/util/clock.js';
import type { RedisLockStore } from '../../../redis/redis-lock-store.js';
import { MARK_DONE } from '../../../redis/script/scripts.js';

/** The pauses between two attempts to reach Redis. */
const PAUSE_MS = { first: 20, longest: 500 };
const READ_ONLY = '';

/** Remembers in Redis, in the slot of the lock, that a command has ended well under a key. */
export class OnceMarker {
  readonly #alarms = new Alarms(SYSTEM_CLOCK);
  readonly #refused = new RefusedCommands(SYSTEM_CLOCK);

  /** @param key the version of the work, such as the tag of a release */
  constructor(
    private readonly store: RedisLockStore,
    private readonly resource: string,
    private readonly key: string,
  ) {}

  /**
   * How long ago the command ended well, in milliseconds; `null` if it has not.
   *
   * @throws LockUnavailableError if Redis does not answer within `withinMs`
   */
  doneAgoMs(withinMs: number): Promise<number | null> {
    return this.#ask(READ_ONLY, 0, withinMs);
  }

  /**
   * Redis notes it only while this owner holds the lock. So a runner that has lost its lease leaves no marker.
   *
   * @returns false if the owner does not hold the lock any more
   * @throws LockUnavailableError if Redis does not answer within `withinMs`
   */
  async set(ownerId: string, keepMs: number, withinMs: number): Promise<boolean> {
    return (await this.#ask(ownerId, keepMs, withinMs)) !== null;
  }

  async #ask(ownerId: string, keepMs: number, withinMs: number): Promise<number | null> {
    const { store, resource } = this;
    const keys = [store.keys.lock(resource), store.keys.done(resource, this.key)];
    const answer = await askUntil(this.#alarms, SYSTEM_CLOCK, {
      send: () => store.run(MARK_DONE, keys, [ownerId, keepMs], (reply) => reply as number | null),
      timeoutMs: Math.min(withinMs, LOCK_DEFAULTS.attemptTimeoutMs),
      giveUpAt: SYSTEM_CLOCK.now() + withinMs,
      pauseMs: (failures) => backoff(PAUSE_MS, failures),
      // Without the marker the work is done once more.
      ...(ownerId !== READ_ONLY && { refused: this.#refused }),
    });
    if (answer.outcome === 'answered') return answer.value;
    if (answer.outcome === 'aborted') throw new Error('No signal was passed.');
    const operation = ownerId === READ_ONLY ? 'read the --once marker of' : 'set the --once marker of';
    throw new LockUnavailableError(resource, operation, answer.outcome, answer.error);
  }
}
