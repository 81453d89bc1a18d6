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
export { getRedisLockToken, InjectRedisLock } from './nest/service-parts.js';

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
} from './features/leader/nest/leader-only.decorator.js';
export { Once, type OnceDecoratorOptions } from './features/once/nest/once.decorator.js';
export type { LockedMethodDecorator } from './nest/decorators/method-types.js';
export type { LockDecoratorOptions, SemaphoreDecoratorOptions } from './nest/decorators/lock-plan.js';

// Handlers of requests and messages
export { LockHandler, type LockHandlerOptions } from './nest/handlers/lock-handler.decorator.js';
export { LockInterceptor } from './nest/handlers/lock.interceptor.js';
export { LockExceptionFilter } from './nest/handlers/lock-exception.filter.js';
export { maskLockErrors } from './nest/handlers/mask-lock-errors.js';

// Locks and leases
export type { Holder, LockLabel } from './kernel/api/holder.js';
export type { LockMode, LockOptions, PlaceInLine } from './kernel/api/lock-options.js';
export type { Lease, TryUsingResult } from './kernel/api/lease.js';
export { key, type ResourceNames } from './kernel/api/resource.js';
export { mergeSignals } from './kernel/util/signals.js';
export { exponentialBackoff, fixedInterval, type RetryStrategy } from './kernel/api/retry.js';

// Database transactions
export { TransactionScope } from './features/transactions/nest/transaction-scope.js';
export { typeormTransactional } from './features/transactions/nest/typeorm-transactional.js';

// Semaphores, leadership and singleton jobs
export type { Semaphore } from './kernel/semaphore/semaphore.js';
export type { OnceOptions } from './features/once/core/once-options.js';
export type { PermitOptions, SemaphoreOptions } from './kernel/semaphore/semaphore-options.js';
export type { CampaignOptions, Leadership, Term } from './features/leader/core/leadership.js';
export type { SingletonRun, SingletonRunOptions } from './features/jobs/core/singleton-run-options.js';

// Errors
export {
  InvalidLockOptionsError,
  InvalidResourceError,
  LockAbortedError,
  LockError,
  LockModeMismatchError,
  LockModuleMissingError,
  LockShutdownError,
  LockUnavailableError,
} from './kernel/api/errors.js';
export { LockBusyError, LockQueueFullError, LockTimeoutError } from './kernel/api/busy-errors.js';
export { LeaseLostError, LockNotHeldError, LockReentryError, NotLeaderError } from './kernel/api/lease-errors.js';

// Events, and what an operator sees and does
export type { LockEvent, LockOrderEdge } from './kernel/events/events.js';
export type { LockObserver } from './kernel/events/observers.js';
export type { LockState } from './kernel/store/lock-state.js';
export type { LockFleet } from './features/fleet/core/findings/finding.js';
export type { LockHealth } from './features/fleet/core/health/health-checks.js';
export type { Contention } from './features/fleet/core/contention/contention.js';
export type { LockExplanation } from './features/fleet/core/explain/explanation.js';
