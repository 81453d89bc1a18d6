import type { ForeignClient, ForeignLock } from '../core/api/foreign-lock.js';
import { type OptionsOf, OptionTable } from '../core/api/option-table.js';
import { ForeignServer } from './foreign-server.js';
import {
  FOREIGN_CLIENT,
  FOREIGN_KEY,
  type ForeignClientOption,
  foreignKey,
  type ForeignKey,
  type ForeignKeyOptions,
  ownerId,
} from './key-lock.js';
import { RedissonClaim } from './redisson-claim.js';
import { UnlockChannels } from './unlock-channels.js';

/** What {@link redisson} takes. */
export interface RedissonOptions extends ForeignClientOption, ForeignKeyOptions {
  /**
   * The name of the `RLock` for each of our resources: what the Java code passes to `getLock()`, after its
   * `NameMapper`, if it has one. Where it returns `undefined`, only our lock is taken.
   *
   * @allowed a function
   * @default the name of the resource
   */
  key?: ForeignKey;
}

export const REDISSON_OPTIONS = new OptionTable({
  client: FOREIGN_CLIENT.required(),
  key: FOREIGN_KEY,
} satisfies OptionsOf<RedissonOptions>);

/**
 * The `RLock` of Redisson, and of `node-redisson`, for the option `alsoLock`: Java services and Nest services take the
 * same lock, and wake each other when they release it. Its other locks are not supported. Use no `RFairLock`,
 * `RFencedLock` or `RReadWriteLock` of the same name.
 *
 * @throws InvalidLockOptionsError
 */
export function redisson(options: RedissonOptions): ForeignLock {
  REDISSON_OPTIONS.check('redisson', options);
  const { client, key } = options;
  return {
    library: 'redisson',
    keyOf: foreignKey('redisson', key),
    open(context): ForeignClient {
      const server = new ForeignServer(client, context);
      const channels = new UnlockChannels(server.subscriber);
      // As an application of Java is known there: each claim is one of its threads.
      const id = context.randomId();
      let threads = 0;
      return {
        claim: (name, run) => new RedissonClaim(server, channels, name, `${ownerId(id, run)}:${++threads}`, run),
        close: () => server.close(),
      };
    },
  };
}
