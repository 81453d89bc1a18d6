import type { ForeignLock } from '../core/api/foreign-lock.js';
import {
  CLIENTS_AND_KEY,
  type ForeignClientsOption,
  foreignKey,
  type ForeignKeyOptions,
  keyLock,
  readClients,
} from './key-lock.js';

/** What {@link redlock} takes. */
export interface RedlockOptions extends ForeignClientsOption, ForeignKeyOptions {}

/**
 * The locks of `redlock`, version 4 and 5, for the option `alsoLock`. The key is the resource of `redlock.acquire()`.
 *
 * @throws InvalidLockOptionsError
 */
export function redlock(options: RedlockOptions): ForeignLock {
  CLIENTS_AND_KEY.check('redlock', options);
  const keyOf = foreignKey('redlock', options.key);
  return keyLock({ library: 'redlock', clients: readClients('redlock', options), keyOf });
}
