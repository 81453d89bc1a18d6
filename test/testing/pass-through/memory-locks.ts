import { Test } from '@nestjs/testing';
import { RedisLockModule, RedisLockService } from '../../../lib/index.js';

/** The real service, on the memory store. */
export async function memoryLocks(): Promise<{ locks: RedisLockService } & AsyncDisposable> {
  const testing = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ connection: 'memory:' })],
  }).compile();
  return { locks: testing.get(RedisLockService), [Symbol.asyncDispose]: () => testing.close() };
}
