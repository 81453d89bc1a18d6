export type { AdoptOptions } from './core/adoption.js';
export type { CampaignCallbacks, CampaignOptions } from './core/campaign-options.js';
export type { CountdownLatch, CountDownOptions, LatchOptions, LatchWaitOptions } from './core/countdown-latch.js';
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
} from './core/errors.js';
export { LockReentryError } from './core/reentry-error.js';
export type { LockEvent, LockObserver } from './core/events.js';
export { FencedCommandError, StaleFencingTokenError } from './core/fencing-errors.js';
export type { Leadership, LeaderWork } from './core/leadership.js';
export { key, type KeyValue } from './core/key.js';
export type { Lease } from './core/lease.js';
export type { LockedWork } from './core/locked-work.js';
export type { AcquireMode, LockMode, LockOptions } from './core/lock-options.js';
export type { LockHolder, LockState, LockWaiter } from './core/lock-store.js';
export type { ForceReleaseOptions, ListOptions } from './core/operators-view.js';
export { NotLeaderError, type NotLeaderReason } from './core/not-leader-error.js';
export type { ResourceNames } from './core/resource.js';
export { exponentialBackoff, fixedInterval, type RetryState, type RetryStrategy } from './core/retry.js';
export type { Semaphore } from './core/semaphore.js';
export type { PermitOptions, SemaphoreOptions } from './core/semaphore-options.js';
export type { TransferOptions } from './core/transfer-options.js';
export type { SingletonRun, SingletonRunOptions, SingletonWork } from './core/singleton-run-options.js';
export type { DemotionReason, Term } from './core/term.js';
export { DistributedLock, type DistributedLockOptions } from './nest/distributed-lock.decorator.js';
export { DistributedSemaphore, type DistributedSemaphoreOptions } from './nest/distributed-semaphore.decorator.js';
export { InjectRedisLock } from './nest/inject-redis-lock.decorator.js';
export { LeaderOnly, type LeaderOnlyOptions, type LeaderOnlyMethodDecorator } from './nest/leader-only.decorator.js';
export type { BusyError, DecorationOptions, OnBusy } from './nest/lock-decoration.js';
export type { LockDecoratorOptions, ReadWriteLockOptions } from './nest/lock-decorator-options.js';
export type { LockedMethodDecorator } from './nest/locked-method.js';
export { LockExceptionFilter } from './nest/lock-exception.filter.js';
export { LockHandler, type LockHandlerOptions, type SemaphoreHandlerOptions } from './nest/lock-handler.decorator.js';
export { LockInterceptor } from './nest/lock.interceptor.js';
export { ReadLock, type ReadWriteLockDecorator, WriteLock } from './nest/read-write-lock.decorators.js';
export type { RedisLockModuleExtras, RedisLockModuleOptions } from './nest/redis-lock-module-options.js';
export {
  RedisLockModule,
  type RedisLockModuleAsyncOptions,
  type RedisLockOptionsFactory,
} from './nest/redis-lock.module.js';
export { RedisLockService } from './nest/redis-lock.service.js';
export type { SemaphoreDecoratorOptions } from './nest/semaphore-decorator-options.js';
export { getRedisLockToken } from './nest/tokens.js';
export { fence, type FenceGuard } from './redis/fence.js';
export type { FencedCommand } from './redis/fenced-commands.js';
export type { ClusterConnectionOptions, RedisConnectionOption } from './redis/connection-options.js';
