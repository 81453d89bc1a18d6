/**
 * Locks for NestJS on Redis: the module, the service, the decorators, the errors and the events.
 *
 * @module nestjs-redis-lock
 */
export type { AdoptOptions } from './core/lease/adoption.js';
export type { CampaignCallbacks, CampaignOptions } from './core/leader/campaign-options.js';
export type { CountdownLatch, CountDownOptions, LatchOptions, LatchWaitOptions } from './core/latch/countdown-latch.js';
export {
  type AttemptOutcome,
  InvalidLockOptionsError,
  InvalidResourceError,
  type LeaseLossReason,
  LeaseLostError,
  LockAbortedError,
  LockBusyError,
  LockError,
  LockModeMismatchError,
  LockModuleMissingError,
  LockQueueFullError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
} from './core/api/errors.js';
export { LockReentryError } from './core/api/reentry-error.js';
export type { LockEvent, LockObserver } from './core/api/events.js';
export { FencedCommandError, StaleFencingTokenError } from './core/api/fencing-errors.js';
export type { DemotionReason, Leadership, LeaderWork, Term } from './core/leader/leadership.js';
export { key, type KeyValue } from './core/api/key.js';
export type { Lease } from './core/api/lease.js';
export type { LockedWork } from './core/api/locked-work.js';
export type { AcquireMode, LockMode, LockOptions } from './core/api/lock-options.js';
export type { LockHolder, LockState, LockWaiter } from './core/store/lock-store.js';
export type { ForceReleaseOptions, ListOptions } from './core/operators.js';
export { NotLeaderError, type NotLeaderReason } from './core/api/not-leader-error.js';
export type { ResourceNames } from './core/api/resource.js';
export { exponentialBackoff, fixedInterval, type RetryState, type RetryStrategy } from './core/api/retry.js';
export type { Semaphore } from './core/semaphore/semaphore.js';
export type { PermitOptions, SemaphoreOptions } from './core/semaphore/semaphore-options.js';
export type { TransferOptions } from './core/api/transfer-options.js';
export type { SingletonRun, SingletonRunOptions, SingletonWork } from './core/singleton/singleton-run-options.js';
export { DistributedLock, type DistributedLockOptions } from './nest/decorators/distributed-lock.decorator.js';
export {
  DistributedSemaphore,
  type DistributedSemaphoreOptions,
} from './nest/decorators/distributed-semaphore.decorator.js';
export {
  LeaderOnly,
  type LeaderOnlyOptions,
  type LeaderOnlyMethodDecorator,
} from './nest/leader/leader-only.decorator.js';
export type {
  BusyError,
  DecoratorOptions,
  LockDecoratorOptions,
  OnBusy,
  ReadWriteLockOptions,
} from './nest/decorators/lock-plan.js';
export type { LockedMethodDecorator } from './nest/decorators/locked-method.js';
export { LockExceptionFilter } from './nest/handlers/lock-exception.filter.js';
export {
  LockHandler,
  type LockHandlerOptions,
  type SemaphoreHandlerOptions,
} from './nest/handlers/lock-handler.decorator.js';
export { LockInterceptor } from './nest/handlers/lock.interceptor.js';
export { ReadLock, type ReadWriteLockDecorator, WriteLock } from './nest/decorators/read-write-lock.decorators.js';
export type { RedisLockModuleExtras, RedisLockModuleOptions } from './nest/module/module-options.js';
export {
  RedisLockModule,
  type RedisLockModuleAsyncOptions,
  type RedisLockOptionsFactory,
} from './nest/module/redis-lock.module.js';
export { RedisLockService } from './nest/redis-lock.service.js';
export type { SemaphoreDecoratorOptions } from './nest/decorators/semaphore-decorator-options.js';
export { getRedisLockToken, InjectRedisLock } from './nest/tokens.js';
export { fence, type FenceGuard } from './redis/fence/fence.js';
export type { FencedCommand } from './redis/fence/fenced-commands.js';
export type { ClusterConnectionOptions, RedisConnectionOption } from './redis/connection/connection-options.js';
