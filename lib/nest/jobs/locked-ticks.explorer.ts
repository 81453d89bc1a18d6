import { Logger, type OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import 'reflect-metadata';
import { skippingDecoratorOf } from '../decorators/method.js';
import { prototypeOf, wrappersOf } from '../prototype-of.js';
import { scheduleDecoratorOf } from '../request/known-handlers.js';
import { Scheduler, SINGLETON_JOB } from '../schedule/singleton-job.explorer.js';
import { DEFAULT_NAME } from '../tokens.js';
import { type LockedMethod, lockedMethodsOf } from '../transactions/transaction-order.js';

type Methods = Readonly<Record<string | symbol, unknown>>;

/**
 * Warns of methods that `@nestjs/schedule` calls and that run under a lock: such a lock keeps no instance from running the
 * tick. One explorer for each lock service.
 */
export class LockedTicksExplorer implements OnModuleInit {
  readonly #logger = new Logger('RedisLockModule');

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly lockService: string,
  ) {}

  onModuleInit(): void {
    const scheduler = new Scheduler(this.discovery);
    if (!scheduler.isImported) return;
    const lines = new Set<string>();
    for (const wrapper of wrappersOf(this.discovery)) {
      const prototype = prototypeOf(wrapper) as Methods | undefined;
      for (let each = prototype; each; each = Object.getPrototypeOf(each) as Methods | undefined) {
        for (const locked of lockedMethodsOf(each)) {
          const method = prototype![locked.name];
          // A subclass may override the method without the decorators.
          if (typeof method !== 'function' || method !== each[locked.name]) continue;
          const line = this.#lineFor(locked, method, scheduler);
          if (line !== undefined) lines.add(line);
        }
      }
    }
    for (const line of lines) this.#logger.warn(line);
  }

  #lineFor(locked: LockedMethod, method: object, scheduler: Scheduler): string | undefined {
    const { lockService = DEFAULT_NAME, skips, minHoldMs } = locked;
    const schedule = scheduleDecoratorOf(method);
    if (schedule === undefined || lockService !== this.lockService) return undefined;
    if (scheduler.switchedOffBy(method) !== undefined || Reflect.hasMetadata(SINGLETON_JOB, method)) return undefined;
    if ((skips && minHoldMs > 0) || skippingDecoratorOf(method) === '@LeaderOnly') return undefined;
    const { where, decorator } = locked;
    const instead = `To run each tick on one instance, use @Singleton${schedule} of nestjs-redis-lock/schedule in place of both`;
    return skips
      ? `${where} has @${schedule} and ${decorator}: an instance whose timer fires when the first run has ended runs ` +
          `the tick again. ${instead}, or set minHoldMs to more than clocks and timers are apart. See docs/guide/cron.md.`
      : `${where} has @${schedule} and ${decorator}: every instance runs each tick, and the lock only makes them take ` +
          `turns. ${instead}. To keep it as it is, let a method with @${schedule} call another one with the lock. See ` +
          'docs/guide/cron.md.';
  }
}
