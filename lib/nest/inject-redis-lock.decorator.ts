import { Inject } from '@nestjs/common';
import { getRedisLockToken } from './tokens.js';

/**
 * Injects the lock service that was registered by this name, or the default one.
 *
 * ```ts
 * constructor(@InjectRedisLock('billing') private readonly locks: RedisLockService) {}
 * ```
 */
export function InjectRedisLock(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getRedisLockToken(name));
}
