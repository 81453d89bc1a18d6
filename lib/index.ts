/**
 * Locks for NestJS on Redis: the module, the service, the decorators, the errors and the events.
 *
 * @module nestjs-redis-lock
 */

// The module and the service
export { RedisLockModule } from './nest/module/redis-lock.module.js';
export type { RedisLockModuleAsyncOptions, RedisLockOptionsFactory } from './nest/module/registration.js';
export type { RedisLockModuleOptions } from './nest/module/module-options.js';
export type { RedisConnectionOption } from './redis/connection/connection-options.js';
export { RedisLockService } from './nest/redis-lock.service.js';
export { getRedisLockToken, InjectRedisLock } from './nest/tokens.js';

// Decorators of methods
export {
  DistributedLock,
  DistributedSemaphore,
  ReadLock,
  type ReadWriteLockDecorator,
  WriteLock,
} from './nest/decorators/lock.decorators.js';
export {
  LeaderOnly,
  type LeaderOnlyMethodDecorator,
  type LeaderOnlyOptions,
} from './nest/leader/leader-only.decorator.js';
export type { LockedMethodDecorator } from './nest/decorators/method-types.js';
export type { LockDecoratorOptions, SemaphoreDecoratorOptions } from './nest/decorators/lock-plan.js';

// Handlers of requests and messages
export { LockHandler, type LockHandlerOptions } from './nest/handlers/lock-handler.decorator.js';
export { LockInterceptor } from './nest/handlers/lock.interceptor.js';
export { LockExceptionFilter } from './nest/handlers/lock-exception.filter.js';
export { maskLockErrors } from './nest/handlers/mask-lock-errors.js';

// Locks and leases
export type { Holder, LockLabel } from './core/api/holder.js';
export type { LockMode, LockOptions } from './core/api/lock-options.js';
export type { Lease, TryUsingResult } from './core/api/lease.js';
export { key, type ResourceNames } from './core/api/resource.js';
export { mergeSignals } from './core/util/signals.js';
export { exponentialBackoff, fixedInterval, type RetryStrategy } from './core/api/retry.js';

// Database transactions
export { TransactionScope } from './nest/transactions/transaction-scope.js';
export { typeormTransactional } from './nest/transactions/typeorm-transactional.js';

// Semaphores, leadership and singleton jobs
export type { Semaphore } from './core/semaphore/semaphore.js';
export type { PermitOptions, SemaphoreOptions } from './core/semaphore/semaphore-options.js';
export type { CampaignOptions, Leadership, Term } from './core/leader/leadership.js';
export type { SingletonRun, SingletonRunOptions } from './core/singleton/singleton-run-options.js';

// Errors
export {
  InvalidLockOptionsError,
  InvalidResourceError,
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
export { LeaseLostError, LockNotHeldError, LockReentryError, NotLeaderError } from './core/api/lease-errors.js';

// Events, and what an operator sees and does
export type { LockEvent, LockOrderEdge } from './core/events/events.js';
export type { LockObserver } from './core/events/observers.js';
export type { LockState } from './core/store/lock-state.js';
export type { LockFleet } from './core/fleet/lock-fleet.js';
export type { LockHealth } from './core/health/health-checks.js';
export type { Contention } from './core/contention/contention.js';
export type { LockExplanation } from './core/explain/explanation.js';
