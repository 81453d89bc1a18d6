import { Logger } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import 'reflect-metadata';
import { prototypesOf } from '../../../../kernel/util/objects.js';
import { type LockedMethod, lockedMethodsOf, skippingDecoratorOf } from '../../../../nest/decorators/method.js';
import { scheduleDecoratorOf } from '../../../../nest/decorators/known-handlers.js';
import type { Scan } from '../../../../nest/scan.js';
import { Scheduler } from '../scheduler.js';
import { SINGLETON_JOB } from '../singleton-method.js';

type Methods = Readonly<Record<string | symbol, unknown>>;

/**
 * Warns of methods that `@nestjs/schedule` calls and that run under a lock: such a lock keeps no instance from running the
 * tick.
 */
export function warnOfLockedTicks(scan: Scan, discovery: DiscoveryService): void {
  const scheduler = new Scheduler(discovery);
  if (!scheduler.isImported) return;
  const lines = new Set<string>();
  for (const prototype of scan.prototypes as ReadonlySet<Methods>) {
    for (const each of prototypesOf(prototype) as Methods[]) {
      for (const locked of lockedMethodsOf(each).filter(scan.isOurs)) {
        const method = prototype[locked.name];
        // A subclass may override the method without the decorators.
        if (typeof method !== 'function' || method !== each[locked.name]) continue;
        const line = lineFor(locked, method, scheduler);
        if (line !== undefined) lines.add(line);
      }
    }
  }
  const logger = new Logger('RedisLockModule');
  for (const line of lines) logger.warn(line);
}

function lineFor(locked: LockedMethod, method: object, scheduler: Scheduler): string | undefined {
  const { onBusy, minHoldMs, where, decorator } = locked;
  const skips = onBusy === 'skip';
  const schedule = scheduleDecoratorOf(method);
  if (schedule === undefined) return undefined;
  if (scheduler.switchedOffBy(method) !== undefined || Reflect.hasMetadata(SINGLETON_JOB, method)) return undefined;
  if ((skips && minHoldMs > 0) || skippingDecoratorOf(method) === '@LeaderOnly') return undefined;
  const instead = `To run each tick on one instance, use @Singleton${schedule} of nestjs-redis-lock/schedule in place of both`;
  return skips
    ? `${where} has @${schedule} and ${decorator}: if the first run ends before the timer of another instance fires, that ` +
        `instance runs the tick again. ${instead}, or set minHoldMs to more than the difference between the clocks and timers of two instances. See docs/guide/cron.md.`
    : `${where} has @${schedule} and ${decorator}: every instance runs each tick, and the lock only makes them take ` +
        `turns. ${instead}. To keep it as it is, let a method with @${schedule} call another one with the lock. See ` +
        'docs/guide/cron.md.';
}
