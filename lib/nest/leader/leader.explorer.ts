import type { OnApplicationBootstrap, OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import 'reflect-metadata';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { campaignFor, sharedLeadership } from './shared-leadership.js';
import { wrappersOf } from '../scan.js';
import { DEFAULT_NAME } from '../tokens.js';
import { quote } from '../../core/util/quoted.js';

/** The metadata key of a class: its decorated methods, also those that it inherits. */
export const LEADER_ONLY = 'nestjs-redis-lock:leader-only';

export interface LeaderOnlyMethod {
  /** `Class.method`, for messages. */
  readonly where: string;
  readonly name: string;
  readonly leaseMs: number | undefined;
  readonly lockService: string | undefined;
}

export function leaderOnlyMethodsOf(prototype: object): readonly LeaderOnlyMethod[] {
  return (Reflect.getMetadata(LEADER_ONLY, prototype) as LeaderOnlyMethod[] | undefined) ?? [];
}

/**
 * Begins the campaigns of the decorated methods when the application starts, so that the first call finds a leader. One
 * explorer for each lock service.
 */
export class LeaderExplorer implements OnModuleInit, OnApplicationBootstrap {
  /** By name, a method that decides the lease: one with `leaseMs`, if there is one. */
  readonly #leaderships = new Map<string, LeaderOnlyMethod>();
  readonly #discovery: DiscoveryService;
  readonly #service: RedisLockService;
  readonly #lockService: string;

  constructor(discovery: DiscoveryService, service: RedisLockService, lockService: string) {
    this.#discovery = discovery;
    this.#service = service;
    this.#lockService = lockService;
  }

  onModuleInit(): void {
    for (const { instance } of wrappersOf(this.#discovery)) {
      if (instance === null || typeof instance !== 'object' || !Object.getPrototypeOf(instance)) continue;
      for (const method of leaderOnlyMethodsOf(Object.getPrototypeOf(instance) as object)) this.#note(method);
    }
  }

  onApplicationBootstrap(): void {
    for (const { name, leaseMs } of this.#leaderships.values()) {
      // In a test, the service may be a mock without this method.
      if (typeof this.#service.campaign !== 'function') return;
      // Throws if a campaign with another lease is running already.
      this.#service.campaign(name, campaignFor(leaseMs));
      sharedLeadership(this.#service, name, leaseMs);
    }
  }

  #note(method: LeaderOnlyMethod): void {
    const { name, leaseMs, lockService = DEFAULT_NAME, where } = method;
    if (lockService !== this.#lockService) return;
    const other = this.#leaderships.get(name);
    if (other?.leaseMs === undefined) return void this.#leaderships.set(name, method);
    if (leaseMs === undefined || leaseMs === other.leaseMs) return;
    throw new InvalidLockOptionsError(
      `${other.where} and ${where} have different leases for the leadership ${quote(name)}: leaseMs ` +
        `${other.leaseMs} and ${leaseMs}. An instance has one campaign for it, with one lease. Set leaseMs on one of ` +
        `them, or the same on both.`,
      'leaseMs',
    );
  }
}
