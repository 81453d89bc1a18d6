import type { ForeignLock } from '../core/api/foreign-lock.js';
import {
  CLIENTS_AND_KEY,
  type ForeignClientsOption,
  foreignKey,
  type ForeignKeyOptions,
  keyLock,
  readClients,
} from './key-lock.js';

/** What {@link redisSemaphore} takes. */
export interface RedisSemaphoreOptions extends ForeignClientsOption, ForeignKeyOptions {}

/**
 * The `Mutex` of `redis-semaphore`, and with `clients` its `RedlockMutex`, for the option `alsoLock`. The key is what
 * the old code passes to the constructor, without the prefix `mutex:` that the library adds. Its semaphores are not
 * supported: let both releases use them until all old processes are gone.
 *
 * @throws InvalidLockOptionsError
 */
export function redisSemaphore(options: RedisSemaphoreOptions): ForeignLock {
  CLIENTS_AND_KEY.check('redisSemaphore', options);
  const nameOf = foreignKey('redisSemaphore', options.key);
  const mutex = (resource: string): string | undefined => {
    const name = nameOf(resource);
    return name === undefined ? undefined : `mutex:${name}`;
  };
  return keyLock({ library: 'redis-semaphore', clients: readClients('redisSemaphore', options), keyOf: mutex });
}
