import 'reflect-metadata';
import type { Groups } from '../../core/events/groups.js';
import { leaderResource } from '../../core/api/resource.js';
import { handlerLocksOf, lockedHandlersOf } from '../handlers/handler-locks.js';
import { leaderOnlyMethodsOf } from '../leader/leader.explorer.js';
import type { Scan } from '../scan.js';
import { jobsOf } from '../schedule/singleton-job.explorer.js';
import { lockedMethodsOf } from '../transactions/transaction-order.js';

/** Registers the groups of all decorated methods, jobs and leaderships, before any call can take their places. */
export function registerGroups(scan: Scan, groups: Groups): void {
  // The name of a job may be that of the class of the instance.
  for (const prototype of scan.prototypes()) {
    for (const { name } of jobsOf(prototype).filter(scan.isOurs)) groups.register('job', name);
  }
  for (const prototype of scan.allPrototypes()) {
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
