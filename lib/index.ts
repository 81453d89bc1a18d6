export {
  type AttemptOutcome,
  InvalidLockOptionsError,
  type LeaseLossReason,
  LeaseLostError,
  LockAbortedError,
  LockBusyError,
  LockError,
  LockModuleMissingError,
  LockQueueFullError,
  LockReentryError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
} from './core/errors.js';
export type { LockEvent, LockObserver } from './core/events.js';
export { FencedCommandError, StaleFencingTokenError } from './core/fencing-errors.js';
export type { Lease } from './core/lease.js';
export type { LockedWork } from './core/lock-client.js';
export type { LockMode, LockOptions } from './core/lock-options.js';
export type { LockHolder, LockState } from './core/lock-store.js';
export type { ResourceNames } from './core/resource.js';
export { exponentialBackoff, fixedInterval, type RetryState, type RetryStrategy } from './core/retry.js';
export type { SingletonRun, SingletonRunOptions, SingletonWork } from './core/singleton-run-options.js';
export {
  DistributedLock,
  type DistributedLockOptions,
  type LockedMethodDecorator,
} from './nest/distributed-lock.decorator.js';
export { InjectRedisLock } from './nest/inject-redis-lock.decorator.js';
export type { BusyError, LockDecoratorOptions, OnBusy } from './nest/lock-decorator-options.js';
export { LockExceptionFilter } from './nest/lock-exception.filter.js';
export { LockHandler, type LockHandlerOptions } from './nest/lock-handler.decorator.js';
export { LockInterceptor } from './nest/lock.interceptor.js';
export type { RedisLockModuleExtras, RedisLockModuleOptions } from './nest/redis-lock-module-options.js';
export {
  RedisLockModule,
  type RedisLockModuleAsyncOptions,
  type RedisLockOptionsFactory,
} from './nest/redis-lock.module.js';
export { RedisLockService } from './nest/redis-lock.service.js';
export { getRedisLockToken } from './nest/tokens.js';
export { fence, type FenceGuard } from './redis/fence.js';
export type { FencedCommand } from './redis/fenced-commands.js';
export type { RedisConnectionOption } from './redis/redis-connection.js';
