import type { Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { type TestLocks, testLocks, withTestLocks } from 'nestjs-redis-lock/testing';
import { AppModule } from '../../src/app.module.js';
import { Database } from '../../src/database/database.js';
import { MemoryDatabase } from './memory-database.js';

/**
 * Starts the whole shop in this process, without a Redis, for all tests of the enclosing file. Its locks never expire.
 */
export function useShop() {
  let shop: TestingModule | undefined;
  const running = () => {
    if (shop === undefined) throw new Error('The shop of useShop() runs only inside tests and hooks');
    return shop;
  };
  beforeAll(async () => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    shop = await withTestLocks(builder, { clock: 'manual' })
      .overrideProvider(Database)
      .useClass(MemoryDatabase)
      .compile();
  });
  afterEach(() => testLocks(running()).expectNothingHeld());
  afterAll(() => shop?.close());
  return {
    get: <T>(provider: Type<T>): T => running().get(provider, { strict: false }),
    locks: (name?: string): TestLocks => testLocks(running(), name),
  };
}
