import type { OnModuleInit } from '@nestjs/common';
import { checkHandlers } from '../handlers/check-handlers.js';
import { handlerLocksOf } from '../handlers/handler-locks.js';
import { warnOfUnansweredErrors } from '../handlers/unanswered-errors.js';
import { warnOfLockedTicks } from '../jobs/locked-ticks.js';
import type { Scan } from '../scan.js';
import { groupsOf } from '../service-parts.js';
import { refuseWrongOrder } from '../transactions/transaction-order.js';
import { registerGroups } from './register-groups.js';

/** Looks at all decorated methods when the application starts. One for each lock service. */
export class BootChecks implements OnModuleInit {
  /** @param waitsForCommit whether a release waits for the end of a transaction */
  constructor(
    private readonly scan: Scan,
    private readonly service: object,
    private readonly waitsForCommit: boolean,
  ) {}

  /** @throws InvalidLockOptionsError where a lock is written that no call would hold */
  onModuleInit(): void {
    const groups = groupsOf(this.service);
    if (groups) registerGroups(this.scan, groups);
    warnOfLockedTicks(this.scan);
    checkHandlers(this.scan);
    warnOfUnansweredErrors(this.scan);
    refuseWrongOrder(this.scan, (method) => this.waitsForCommit || handlerLocksOf(method) !== undefined);
  }
}
