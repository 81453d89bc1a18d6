import type { ForeignLock } from '../core/api/foreign-lock.js';
import {
  checkKey,
  CLIENTS_AND_KEY,
  type ForeignClientsOption,
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
  const { key = (resource) => resource } = options;
  const library = 'redis-semaphore';
  const mutex = (resource: string): string | undefined => {
    const name = checkKey(library, key(resource));
    return name === undefined ? undefined : `mutex:${name}`;
  };
  return keyLock({ library, clients: readClients('redisSemaphore', options), key: mutex });
}
