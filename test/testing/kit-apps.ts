import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLock, RedisLockService } from 'nestjs-redis-lock';
import { RedisLockTestingModule, type TestLocks, testLocks } from 'nestjs-redis-lock/testing';
import type { RedisLockTestingModuleOptions } from '../../lib/testing/redis-lock-testing.module.js';

@Injectable()
export class Shop {
  readonly paid: string[] = [];

  @DistributedLock({ key: (order: string) => `order:${order}`, waitMs: 10_000 })
  async pay(order: string): Promise<void> {
    this.paid.push(order);
  }
}

/** An application on the kit. */
export interface KitApp {
  readonly module: TestingModule;
  readonly shop: Shop;
  readonly service: RedisLockService;
  readonly locks: TestLocks;
}

/** Starts applications on the kit, and closes them after each test. */
export function useKitApps(): (options?: RedisLockTestingModuleOptions) => Promise<KitApp> {
  const started: TestingModule[] = [];
  afterEach(async () => {
    await Promise.all(started.splice(0).map((module) => module.close()));
  });
  return async (options) => {
    const imports = [RedisLockTestingModule.forRoot(options)];
    const module = await Test.createTestingModule({ imports, providers: [Shop] }).compile();
    started.push(module);
    await module.init();
    return { module, shop: module.get(Shop), service: module.get(RedisLockService), locks: testLocks(module) };
  };
}
