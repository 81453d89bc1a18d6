import 'reflect-metadata';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import type { Leadership } from '../core/leadership.js';
import { entryOf } from '../../../kernel/util/objects.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import type { Scan } from '../../../nest/scan.js';

/** The metadata key of a class: its decorated methods, including inherited ones. */
const LEADER_ONLY = 'nestjs-redis-lock:leader-only';

interface LeaderOnlyMethod {
  /** `Class.method`, for messages. */
  readonly where: string;
  readonly name: string;
  readonly leaseMs: number | undefined;
  readonly lockService: string | undefined;
}

export function leaderOnlyMethodsOf(prototype: object): readonly LeaderOnlyMethod[] {
  return (Reflect.getMetadata(LEADER_ONLY, prototype) as LeaderOnlyMethod[] | undefined) ?? [];
}

/** Kept on the class, because a decorator above may replace the method. */
export function addLeaderOnlyMethod(prototype: object, method: LeaderOnlyMethod): void {
  Reflect.defineMetadata(LEADER_ONLY, [...leaderOnlyMethodsOf(prototype), method], prototype);
}

/**
 * The leaderships of the decorated methods, by name, each with a method that decides the lease: one with `leaseMs`, if
 * there is one.
 *
 * @throws InvalidLockOptionsError if two methods state different leases
 */
export function leadershipsIn(scan: Scan): ReadonlyMap<string, LeaderOnlyMethod> {
  const leaderships = new Map<string, LeaderOnlyMethod>();
  for (const method of [...scan.prototypes].flatMap(leaderOnlyMethodsOf).filter(scan.isOurs)) {
    const { name, leaseMs, where } = method;
    const other = leaderships.get(name);
    if (other?.leaseMs === undefined) leaderships.set(name, method);
    else if (leaseMs !== undefined && leaseMs !== other.leaseMs) {
      throw new InvalidLockOptionsError(
        `${other.where} and ${where} have different leases for the leadership ${quote(name)}: leaseMs ` +
          `${other.leaseMs} and ${leaseMs}. An instance has one campaign for it, with one lease. Set leaseMs on one of ` +
          `them, or the same on both.`,
        'leaseMs',
      );
    }
  }
  return leaderships;
}

/** Begins the campaigns when the application starts, so that the first call of a method finds a leader. */
export function campaignForAll(service: RedisLockService, leaderships: Iterable<LeaderOnlyMethod>): void {
  // In a test, the service may be a mock without this method.
  if (typeof service.campaign !== 'function') return;
  for (const { name, leaseMs } of leaderships) {
    // Throws if a campaign with another lease is running already.
    service.campaign(name, campaignFor(leaseMs));
    sharedLeadership(service, name, leaseMs);
  }
}

/** The latest leaderships of the decorated methods of a service, by name. */
const known = new WeakMap<RedisLockService, Map<string, Leadership>>();

/**
 * Returns the leadership that all methods decorated with its name share. Begins the campaign if there has been none.
 * `resign()` ends the campaign until the application calls `campaign()` again.
 *
 * @throws InvalidLockOptionsError if it would begin a campaign with an invalid `leaseMs`
 */
export function sharedLeadership(service: RedisLockService, name: string, leaseMs: number | undefined): Leadership {
  const leaderships = entryOf(known, service, () => new Map<string, Leadership>());
  const leadership =
    service.leadership?.(name) ?? leaderships.get(name) ?? service.campaign(name, campaignFor(leaseMs));
  leaderships.set(name, leadership);
  return leadership;
}

function campaignFor(leaseMs: number | undefined): { leaseMs?: number } {
  return leaseMs === undefined ? {} : { leaseMs };
}
