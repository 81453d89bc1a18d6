import type { OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import 'reflect-metadata';
import type { Groups } from '../../core/events/groups.js';
import { leaderResource } from '../../core/api/resource.js';
import { handlerLocksOf, lockedHandlersOf } from '../handlers/handler-locks.js';
import { leaderOnlyMethodsOf } from '../leader/leader.explorer.js';
import { prototypeOf } from '../prototype-of.js';
import { jobsOf } from '../schedule/singleton-job.explorer.js';
import { groupsOf } from '../service-parts.js';
import { DEFAULT_NAME } from '../tokens.js';
import { lockedMethodsOf } from '../transactions/transaction-order.js';

/**
 * Registers the groups of all decorated methods, jobs and leaderships when the application starts, before any call can
 * take their places. One explorer for each lock service.
 */
export class GroupExplorer implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly service: object,
    private readonly lockService: string,
  ) {}

  onModuleInit(): void {
    const groups = groupsOf(this.service);
    if (!groups) return;
    const seen = new Set<object>();
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      const own = prototypeOf(wrapper);
      if (own) this.#registerJobs(own, groups);
      for (let each = own; each && !seen.has(each); each = Object.getPrototypeOf(each) as object | undefined) {
        seen.add(each);
        this.#register(each, groups);
      }
    }
  }

  #register(prototype: object, groups: Groups): void {
    for (const { lockService, group, mode } of lockedMethodsOf(prototype)) {
      if (this.#isOurs(lockService)) groups.register('method', group, mode);
    }
    for (const name of lockedHandlersOf(prototype)) {
      const method = (prototype as Record<string | symbol, object>)[name]!;
      for (const { lockService, group, mode } of handlerLocksOf(method)?.plans ?? []) {
        if (this.#isOurs(lockService)) groups.register('method', group, mode);
      }
    }
    for (const { lockService, name } of leaderOnlyMethodsOf(prototype)) {
      if (this.#isOurs(lockService)) groups.register('leadership', name, 'exclusive', leaderResource(name, 'leader'));
    }
  }

  /** The name of a job may be that of the class of the instance. */
  #registerJobs(prototype: object, groups: Groups): void {
    for (const { name, lockService } of jobsOf(prototype)) if (this.#isOurs(lockService)) groups.register('job', name);
  }

  #isOurs(lockService = DEFAULT_NAME): boolean {
    return lockService === this.lockService;
  }
}
