import type { OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import 'reflect-metadata';
import { leaderResource } from '../../core/api/resource.js';
import type { Groups } from '../../core/events/groups.js';
import { checkHandlers } from '../handlers/check-handlers.js';
import { handlerLocksOf, lockedHandlersOf } from '../handlers/handler-locks.js';
import { warnOfUnansweredErrors } from '../handlers/unanswered-errors.js';
import { warnOfLockedTicks } from '../jobs/locked-ticks.js';
import { leaderOnlyMethodsOf } from '../leader/leader.explorer.js';
import { Scan } from '../scan.js';
import { jobsOf } from '../schedule/singleton-job.explorer.js';
import { groupsOf } from '../service-parts.js';
import { lockedMethodsOf, refuseWrongOrder } from '../transactions/transaction-order.js';

/** Looks at all decorated methods when the application starts. One for each lock service. */
export class BootChecks implements OnModuleInit {
  /**
   * @param lockService the name of the lock service
   * @param waitsForCommit whether a release waits for the end of a transaction
   */
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly lockService: string,
    private readonly service: object,
    private readonly waitsForCommit: boolean,
  ) {}

  /** @throws InvalidLockOptionsError where a lock is written that no call would hold */
  onModuleInit(): void {
    const scan = new Scan(this.discovery, this.lockService);
    const groups = groupsOf(this.service);
    if (groups) registerGroups(scan, groups);
    warnOfLockedTicks(scan, this.discovery);
    checkHandlers(scan);
    warnOfUnansweredErrors(scan);
    refuseWrongOrder(scan, (method) => this.waitsForCommit || handlerLocksOf(method) !== undefined);
  }
}

/** Registers the groups of all decorated methods, jobs and leaderships, before any call can take their places. */
function registerGroups(scan: Scan, groups: Groups): void {
  // The name of a job may be that of the class of the instance.
  for (const prototype of scan.prototypes) {
    for (const { job, name } of jobsOf(prototype)) if (scan.isOurs(job)) groups.register('job', name);
  }
  for (const prototype of scan.allPrototypes) {
    const methods = prototype as Record<string | symbol, object>;
    const plans = lockedHandlersOf(prototype).flatMap((name) => handlerLocksOf(methods[name]!)?.plans ?? []);
    for (const { group, mode } of [...lockedMethodsOf(prototype), ...plans].filter(scan.isOurs)) {
      groups.register('method', group, mode);
    }
    for (const { name } of leaderOnlyMethodsOf(prototype).filter(scan.isOurs)) {
      groups.register('leadership', name, 'exclusive', leaderResource(name, 'leader'));
    }
  }
}
