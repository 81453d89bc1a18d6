import { type JobStore, withoutRecords } from '../../core/store/job-store.js';
import { RefusedLatchStore } from '../../core/store/latch-store.js';
import {
  checkLockStores,
  hasRecords,
  type LockStores,
  type StoreContext,
  type StoreFactory,
} from '../../core/store/lock-stores.js';
import type { StartLog } from '../log/start-log.js';
import { IN_MEMORY, type ResolvedModuleOptions } from './module-options.js';

const NO_OWN_JOBS =
  'the option store returned no jobs, so nothing could say which instance runs a tick. Return a JobStore as jobs';

const NO_OWN_RECORDS =
  'the option store returned jobs with claim and end only, so nothing remembers them. Their ticks run all the same. For ' +
  'history, pauses and missed ticks, return a JobStore as jobs';

const NO_OWN_LATCHES = 'the option store returned no latches. Return a LatchStore as latches';

/** Where one registration of the module keeps its locks, jobs and latches: what is not there refuses, with the reason. */
export type Stores = LockStores & { readonly latches: NonNullable<LockStores['latches']>; readonly jobs: JobStore } & {
  /**
   * Called when the application has started: from then on, the connections keep the process alive. Not before, because
   * Nest does not report a start that fails, and such a process must be able to exit.
   */
  readonly keepAlive?: () => void;
};

/**
 * Makes what the options name. Its room is loaded here: an application that keeps its locks in memory loads no ioredis,
 * and the import of the package costs neither. This file needs no Nest, so it is CommonJS in both formats, and a bundler
 * puts what it loads into the same file.
 */
export async function createStores(
  options: ResolvedModuleOptions,
  context: StoreContext,
  log: StartLog,
): Promise<Stores> {
  if (options.store) return createOwn(context, options.store);
  if (options.quorum) return (await import('./on-quorum.js')).createOnQuorum(options, options.quorum, log);
  if (options.connection() !== IN_MEMORY) return (await import('./on-redis.js')).createOnRedis(options, log);
  return (await import('./in-memory.js')).createInMemory(options, log);
}

async function createOwn(context: StoreContext, create: StoreFactory): Promise<Stores> {
  const stores: unknown = await create(context);
  checkLockStores(stores, context.instanceId);
  return withRefusals(stores);
}

export function withRefusals({ locks, jobs, latches, clock, random }: LockStores): Stores {
  return {
    locks,
    jobs: jobs && hasRecords(jobs) ? jobs : withoutRecords(jobs ? NO_OWN_RECORDS : NO_OWN_JOBS, jobs),
    latches: latches ?? new RefusedLatchStore(NO_OWN_LATCHES),
    clock,
    random,
  };
}
