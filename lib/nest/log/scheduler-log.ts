import type { DiscoveryService } from '@nestjs/core';
import { isUnclaimed } from '../../core/singleton/tick-claims.js';

/** The logger by which the scheduler tells what the method of a job has thrown. */
interface SchedulerLogger {
  error(...args: readonly unknown[]): unknown;
}

const muted = new WeakSet<SchedulerLogger>();

/**
 * The scheduler logs each error of a job with its stack. That a tick could not be claimed is in the log of the lock
 * service, which counts such failures. The rejection itself stays: decorators above and callers are told.
 *
 * Its logger is private. Where a later version has another one, it logs such ticks too.
 */
export function muteUnclaimedTicks(discovery: DiscoveryService): void {
  for (const { name, instance } of discovery.getProviders()) {
    if (name !== 'ScheduleExplorer') continue;
    const logger = (instance as { logger?: SchedulerLogger } | undefined)?.logger;
    if (typeof logger?.error !== 'function' || muted.has(logger)) continue;
    muted.add(logger);
    const write = logger.error.bind(logger);
    logger.error = (...args) => (isUnclaimed(args[0]) ? undefined : write(...args));
  }
}
