/**
 * Locks for NestJS on Redis: the module, the service, the decorators, the errors and the events.
 *
 * @module nestjs-redis-lock
 */

// The module and the service
export { RedisLockModule } from './nest/module/redis-lock.module.js';
export type { RedisLockModuleAsyncOptions, RedisLockOptionsFactory } from './nest/module/async-options.js';
export type {
  OptionsWithConnection,
  OptionsWithQuorum,
  OptionsWithStore,
  RedisLockModuleExtras,
  RedisLockModuleOptions,
  RedisLockModuleSettings,
} from './nest/module/module-options.js';
export type { ClusterConnectionOptions, RedisConnectionOption } from './redis/connection/connection-options.js';
export { RedisLockService } from './nest/redis-lock.service.js';
export { getRedisLockToken, InjectRedisLock } from './nest/tokens.js';

// Decorators of methods
export { DistributedLock, type DistributedLockOptions } from './nest/decorators/distributed-lock.decorator.js';
export { ReadLock, type ReadWriteLockDecorator, WriteLock } from './nest/decorators/read-write-lock.decorators.js';
export {
  DistributedSemaphore,
  type DistributedSemaphoreOptions,
} from './nest/decorators/distributed-semaphore.decorator.js';
export {
  LeaderOnly,
  type LeaderOnlyMethodDecorator,
  type LeaderOnlyOptions,
} from './nest/leader/leader-only.decorator.js';
export type { LockedMethodDecorator, Mistake } from './nest/decorators/method-types.js';
export type {
  BusyError,
  DecoratorOptions,
  LockDecoratorOptions,
  OnBusy,
  ReadWriteLockOptions,
} from './nest/decorators/lock-plan.js';
export type { SemaphoreDecoratorOptions } from './nest/decorators/semaphore-decorator-options.js';

// Handlers of requests and messages
export {
  LockHandler,
  type LockHandlerOptions,
  type SemaphoreHandlerOptions,
} from './nest/handlers/lock-handler.decorator.js';
export { LockInterceptor } from './nest/handlers/lock.interceptor.js';
export { LockExceptionFilter } from './nest/handlers/lock-exception.filter.js';
export { maskLockErrors } from './nest/handlers/mask-lock-errors.js';

// A store of your own
export type { LockStores, StoreContext, StoreFactory } from './core/store/lock-stores.js';
export type {
  AcquireReply,
  FoundInUse,
  LockOwner,
  LockStore,
  Queueing,
  Retention,
  RotateReply,
  SeveralReply,
  Transfer,
} from './core/store/lock-store.js';
export type { GrantListener, PushedGrant, RetentionNotice } from './core/store/hearing.js';
export { LockStoreError, type StoreFailure } from './core/store/store-error.js';
export type { FreedListener, FreedMessage, Watcher, WatchReply, WatchStore } from './core/store/watch-store.js';
export type { ServerHealth, StoreProbe, StoreProblem } from './core/store/store-probe.js';
export type { DueRefusal, Tick, TickClaim, TickDue, TickReply, TickStore } from './core/store/tick-store.js';
export type {
  JobInstance,
  JobNote,
  JobPause,
  JobRegistration,
  JobState,
  JobStore,
  MissedNote,
  MissedReply,
  MissedSpan,
  OwedRun,
  RunEnd,
  RunKind,
  RunOutcome,
  RunRecord,
  TimedPause,
} from './core/store/job-store.js';
export type { LatchListener, LatchSpec, LatchState, LatchStore } from './core/store/latch-store.js';
export type { Clock, Timer } from './core/util/clock.js';
export type { Random } from './core/util/random.js';
export type { PermitRequest } from './core/api/lock-options.js';

// Locks and leases
export type { LabelValue, LockLabel } from './core/api/label.js';
export type { AcquireMode, LockMode, LockOptions } from './core/api/lock-options.js';
export type {
  ForeignClaim,
  ForeignClient,
  ForeignContext,
  ForeignLock,
  ForeignReply,
  ForeignRun,
} from './core/api/foreign-lock.js';
export type { Lease, LockedWork, TransferOptions, TryUsingResult } from './core/api/lease.js';
export type { AdoptOptions } from './core/lease/adoption.js';
export { key, type KeyValue, type ResourceNames } from './core/api/resource.js';
export { mergeSignals } from './core/util/signals.js';
export { exponentialBackoff, fixedInterval, type RetryState, type RetryStrategy } from './core/api/retry.js';

// Database transactions
export type { TransactionHooks } from './core/api/transactions.js';
export { type TransactionalAdapterLike, TransactionScope } from './nest/transactions/transaction-scope.js';
export {
  type TransactionalDataSource,
  typeormTransactional,
  type TypeormTransactionalOptions,
} from './nest/transactions/typeorm-transactional.js';

// Semaphores, latches, leadership and singleton jobs
export type { Semaphore } from './core/semaphore/semaphore.js';
export type { PermitOptions, SemaphoreOptions } from './core/semaphore/semaphore-options.js';
export type { WaitUntilFreeOptions } from './core/watch/wait-until-free.js';
export type { CountdownLatch, CountDownOptions, LatchOptions, LatchWaitOptions } from './core/latch/countdown-latch.js';
export type { CampaignCallbacks, CampaignOptions } from './core/leader/campaign-options.js';
export type { DemotionReason, Leadership, LeaderWork, Term } from './core/leader/leadership.js';
export type { SingletonRun, SingletonRunOptions, SingletonWork } from './core/singleton/singleton-run-options.js';

// Writes to Redis under a fencing token
export { fence, type FenceGuard } from './redis/fence/fence.js';
export type { FencedCommand } from './redis/fence/fenced-commands.js';

// Errors
export {
  type AttemptOutcome,
  type ForeignHolder,
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
export { JobNotFoundError } from './core/jobs/job-errors.js';
export type { SeenHolder, SeenHolders } from './core/api/seen-holders.js';
export {
  FencedCommandError,
  type LeaseLossReason,
  LeaseLostError,
  LockNotHeldError,
  LockReentryError,
  NotLeaderError,
  type NotLeaderReason,
  StaleFencingTokenError,
} from './core/api/lease-errors.js';

// Events, and what an operator sees and does
export type { LockEvent } from './core/events/events.js';
export type { GroupFunction, RegisteredGroup } from './core/events/groups.js';
export type {
  CallTrace,
  HoldTrace,
  LockTracer,
  RenewalTrace,
  RunTrace,
  TracedEnd,
  TracedGrant,
  TracedLock,
  TracedRun,
} from './core/events/lock-tracer.js';
export type { LockObserver } from './core/events/observers.js';
export type { BlockedTime, LockStats, LockTelemetry, LockTelemetrySource } from './core/events/telemetry.js';
export type {
  AcquireEntry,
  HoldOutcome,
  LockAcquireTrace,
  LockHoldTrace,
  LockReleaseTrace,
  LockRenewTrace,
  LockTickTrace,
  LockTrace,
  ReleaseOutcome,
  RenewOutcome,
  TickOutcome,
} from './core/tracing/contexts.js';
export type { AcquireOutcome } from './core/events/outcomes.js';
export type { LockHolder, LockState, LockWaiter } from './core/store/lock-state.js';
export type { HealthOptions, LeadershipHealth, LockHealth } from './core/health/lock-health.js';
export type { HealthProblem, LockTopology } from './core/store/store-probe.js';
export type { ForceReleaseOptions, ListOptions } from './core/operators.js';
export type {
  Contention,
  ContentionOptions,
  ContentionSettings,
  GroupContention,
} from './core/contention/contention.js';
export type { Blocker, SampledSite } from './core/contention/blockers.js';
export type { Durations } from './core/contention/duration-histogram.js';
export type { ExplainOptions } from './core/explain/explainer.js';
export type { LockCause, LockExplanation } from './core/explain/explanation.js';
