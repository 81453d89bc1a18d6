import type { INestApplicationContext, LoggerService, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { createLockService } from '../../../lib/nest/module/create-lock-service.js';
import { resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { connectAdmin } from '../../support/redis/admin-client.js';
import { useRedis, type RedisServer } from '../../support/redis/redis-server.js';

/** The common interface of both versions of a service. */
export type Public<T> = Pick<T, keyof T>;

/** The old code, or the new. */
export interface Version<T extends object> {
  readonly AppModule: Type;
  readonly Service: Type<T>;
}

const QUIET: LoggerService = { log: () => {}, warn: () => {}, error: () => {} };

/** The results of a story with the old code and with the new. */
export type OfBoth<R> = Record<'before' | 'after', R>;

/** A private Redis, which both versions find by REDIS_URL, and two instances of the application on it. */
export function usePods<T extends object>(
  versions: OfBoth<() => Promise<Version<T>>>,
): {
  redis: () => RedisServer;
  client: () => Redis;
  /** One more instance, which is closed after the test. */
  startOne: (version: Version<T>) => Promise<T>;
  /** The same story with both at the same time: most of it is waiting. */
  ofBoth: <R>(story: (pods: [T, T], version: 'before' | 'after') => Promise<R>) => Promise<OfBoth<R>>;
} {
  const redis = useRedis();
  const running: INestApplicationContext[] = [];
  let client: Redis;
  beforeAll(() => {
    process.env.REDIS_URL = redis().url;
    client = connectAdmin(redis().port);
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((app) => app.close()));
    await client.flushall();
  });
  afterAll(() => client.disconnect());
  const startOne = async ({ AppModule, Service }: Version<T>): Promise<T> => {
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
    startOne,
    ofBoth: async (story) => {
      const [old, our] = [await versions.before(), await versions.after()];
      const [before, after] = await Promise.all([
        story([await startOne(old), await startOne(old)], 'before'),
        story([await startOne(our), await startOne(our)], 'after'),
      ]);
      return { before, after };
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
