import type { FactoryProvider, Type } from '@nestjs/common';
import { DiscoveryService, ModuleRef } from '@nestjs/core';
import {
  getRedisLockOptionsToken,
  getRedisLockToken,
  getSingletonJobsToken,
  type InjectedClass,
} from '../../../../nest/service-parts.js';
import type { RedisLockService } from '../../../../nest/redis-lock.service.js';
import { SingletonJobExplorer } from '../singleton-job.explorer.js';
import { SingletonJobs } from './singleton-jobs.js';

/**
 * The jobs of one lock service, as the module provides them: the class that applications inject, and what looks at
 * decorated jobs.
 *
 * @param areKeysShared whether another application could use the same keys by accident
 */
export function jobProviders<O>(
  name: string,
  areKeysShared: (options: O) => boolean,
): { readonly injected: InjectedClass; readonly explorer: FactoryProvider } {
  const token = getRedisLockToken(name);
  return {
    injected: {
      type: SingletonJobs as unknown as Type,
      token: getSingletonJobsToken(name),
      inject: [DiscoveryService, token, SingletonJobExplorer],
      useFactory: (discovery: DiscoveryService, service: RedisLockService, explorer: SingletonJobExplorer) =>
        new SingletonJobs({ service, explorer, discovery }),
    },
    explorer: {
      provide: SingletonJobExplorer,
      inject: [DiscoveryService, ModuleRef, getRedisLockOptionsToken(name)],
      useFactory: (discovery: DiscoveryService, ref: ModuleRef, options: O) =>
        new SingletonJobExplorer(discovery, name, () => ref.get(token), areKeysShared(options)),
    },
  };
}
