import type { ForeignLock } from '../core/api/foreign-lock.js';
import { type OptionsOf, OptionTable } from '../core/api/validation.js';
import {
  FOREIGN_CLIENT,
  FOREIGN_KEY,
  type ForeignClientOption,
  foreignKey,
  type ForeignKey,
  type ForeignKeyOptions,
  keyLock,
} from './key-lock.js';

/** What {@link murlock} takes. */
export interface MurlockOptions extends ForeignClientOption, ForeignKeyOptions {
  /**
   * The key of murlock for each of our resources. `@MurLock(5000, 'id')` on `OrderService.pay(id)` makes the key
   * `OrderService:pay:<id>`; with `lockKeyPrefix: 'custom'` it is `<id>`. Where it returns `undefined`, only our lock is
   * taken.
   *
   * @allowed a function
   * @default the name of the resource
   */
  key?: ForeignKey;
}

export const MURLOCK_OPTIONS = new OptionTable({
  client: FOREIGN_CLIENT.required(),
  key: FOREIGN_KEY,
} satisfies OptionsOf<MurlockOptions>);

/**
 * The locks of `murlock`, for the option `alsoLock`. murlock itself connects by node-redis: give `client` the same URL,
 * or an ioredis client of the same Redis.
 *
 * @throws InvalidLockOptionsError
 */
export function murlock(options: MurlockOptions): ForeignLock {
  MURLOCK_OPTIONS.check('murlock', options);
  const { client, key } = options;
  return keyLock({ library: 'murlock', clients: [client], keyOf: foreignKey('murlock', key) });
}
