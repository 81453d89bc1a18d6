import type { Clock } from '../../../kernel/util/clock.js';
import { pause } from '../../../kernel/util/promises.js';
import { RedisLockStore } from '../../../redis/redis-lock-store.js';
import type { FlaggedScript } from '../../../redis/script/script.js';
import type { SlowSpan } from './check-history.js';

/** A reply that takes longer is one of a slow Redis, or of a broken connection. */
const SLOW_MS = 250;

/** Lets commands of all stores go one after another, at most so many in a second. */
export class Pace {
  #last: Promise<void> = Promise.resolve();
  #nextAt = -Infinity;

  constructor(
    private readonly perSecond: number,
    private readonly clock: Clock,
  ) {}

  /** Resolves when the caller may send that many commands. */
  turn(commands = 1): Promise<void> {
    this.#last = this.#last.then(async () => {
      const waitMs = this.#nextAt - this.clock.now();
      if (waitMs > 0) await pause(this.clock, waitMs);
      this.#nextAt = this.clock.now() + (commands * 1_000) / this.perSecond;
    });
    return this.#last;
  }
}

/** The locks of one client, which sends nothing before its turn. */
export class PacedStore extends RedisLockStore {
  /** @param slow gets the times for which a reply was late */
  constructor(
    options: ConstructorParameters<typeof RedisLockStore>[0],
    private readonly pace: Pace,
    private readonly clock: Clock,
    private readonly slow: SlowSpan[],
  ) {
    super(options);
  }

  override async run<T>(
    script: FlaggedScript<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    read?: (reply: unknown) => T,
    lazily?: boolean,
  ): Promise<T> {
    await this.pace.turn();
    const from = this.clock.now();
    try {
      return await super.run(script, keys, args, read, lazily);
    } finally {
      const to = this.clock.now();
      if (to - from > SLOW_MS) this.slow.push({ from, to });
    }
  }
}
