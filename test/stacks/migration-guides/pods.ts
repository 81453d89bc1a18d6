import type { INestApplicationContext, LoggerService, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { createLockService } from '../../../lib/nest/module/create-lock-service.js';
import { resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { connectAdmin } from '../../support/redis/admin-client.js';
import { useRedis, type RedisServer } from '../../support/redis/redis-server.js';

/** What both versions of a service have. */
export type Public<T> = Pick<T, keyof T>;

/** The old code, or the new. */
export interface Version<T extends object> {
  readonly AppModule: Type;
  readonly Service: Type<T>;
}

const QUIET: LoggerService = { log: () => {}, warn: () => {}, error: () => {} };

/** A private Redis, which both versions find by REDIS_URL, and two instances of the application on it. */
export function usePods(): {
  redis: () => RedisServer;
  client: () => Redis;
  start: <T extends object>(load: () => Promise<Version<T>>) => Promise<[T, T]>;
} {
  const redis = useRedis();
  const running: INestApplicationContext[] = [];
  let client: Redis;
  beforeAll(() => {
    process.env.REDIS_URL = redis().url;
    client = connectAdmin(redis().port);
  });
  afterAll(() => client.disconnect());
  afterEach(async () => {
    await Promise.all(running.splice(0).map((app) => app.close()));
  });
  const startOne = async <T extends object>({ AppModule, Service }: Version<T>): Promise<T> => {
    const app = await Test.createTestingModule({ imports: [AppModule] })
      .setLogger(QUIET)
      .compile();
    running.push(app);
    await app.init();
    return app.get(Service);
  };
  return {
    redis,
    client: () => client,
    start: async (load) => {
      const version = await load();
      return [await startOne(version), await startOne(version)];
    },
  };
}

/** Lock services of this package, for what one call of the other library does and ours does not. */
export function useLocks(redis: () => RedisServer): () => Promise<RedisLockService> {
  const running: RedisLockService[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((service) => service.beforeApplicationShutdown()));
  });
  return async () => {
    const options = resolveModuleOptions({ connection: redis().url, shutdown: { drainMs: 0 } });
    const service = await createLockService(options);
    running.push(service);
    return service;
  };
}
