import type { Lease } from '../kernel/api/lease.js';
import { checkInteger } from '../kernel/api/validation.js';
import type { LockState } from '../kernel/store/lock-state.js';
import { readLockState } from '../memory/memory-server.js';
import type { RedisLockService } from '../nest/redis-lock.service.js';
import { LockAssertions } from './assertions/lock-assertions.js';
import type { LocksUnderTest } from './assertions/locks-under-test.js';
import { type FailingVerb, planFailure, type TestFailure } from './fleet/failures.js';
import type { FleetPlace, TestFleet } from './fleet/test-fleet.js';
import type { LockLog } from './fleet/lock-log.js';
import { type HeldElsewhere, holdElsewhere, type HoldElsewhereOptions } from './hold-elsewhere.js';
import { TestJobs } from '../features/jobs/testing/test-jobs.js';
import { lose, type TestLossReason } from './lose.js';

/** Controls the locks of an application in a test. */
export class TestLocks extends LockAssertions {
  /** Fires the singleton jobs of the fleet. */
  readonly jobs: TestJobs;

  /** @internal */
  constructor(
    /** The lock service of the application. */
    readonly service: RedisLockService,
    private readonly place: FleetPlace,
  ) {
    super(service, seenBy(place));
    this.jobs = new TestJobs(place);
  }

  /** @internal the applications that compete with this one, and their time */
  get fleet(): TestFleet {
    return this.place.fleet;
  }

  /** The events of the locks of the fleet, in order. `locks.log.toString()` formats them. */
  get log(): LockLog {
    return this.fleet.log;
  }

  /**
   * Lets another application of the fleet hold a resource until you call `release()` on the result. That application
   * renews its lease. With `'leader:mailer'`, it is the leader; with `'cron:nightly'`, it runs the job.
   *
   * @throws LockBusyError if the resource is not free within `waitMs`
   */
  holdElsewhere(resource: string, options: HoldElsewhereOptions = {}): Promise<HeldElsewhere> {
    return holdElsewhere(this.fleet, this.place.instance.service, resource, options);
  }

  /**
   * Makes the application lose a lease, with the same effects as on Redis: its `signal` aborts with a `LeaseLostError`,
   * and the next waiter is granted the resource. Resolves when the effects have settled.
   *
   * @param lost a lease, or a resource that the application holds. Readers of one application share a lease, so all of
   *   them lose it
   * @param reason `LeaseLostError.reason`: `'takenOver'`, `'notRenewed'`, `'expired'` or `'maxHold'`
   * @throws TestKitError if the application does not hold it
   */
  lose(lost: string | Lease, reason: TestLossReason = 'takenOver'): Promise<void> {
    return lose(this.place, lost, reason);
  }

  /**
   * Fails the application's next command that acquires, renews or releases a lock, or claims a tick. If no such command
   * follows, {@link expectNothingHeld} fails.
   *
   * @param failure an error, with whose message Redis rejects the command; or how far the command gets: `'notExecuted'`
   *   (it is sent again), `'unknown'` (it is executed, and its reply is lost) or `'refused'`
   * @param resource only commands for this resource fail; for `'claim'`, only for the job with this name
   * @throws InvalidLockOptionsError if an argument is invalid
   */
  failNext(verb: FailingVerb, failure: TestFailure = 'refused', resource?: string): void {
    this.place.instance.fail(planFailure(verb, failure, resource));
  }

  /**
   * Makes Redis unreachable for the whole fleet. New calls fail with `LockUnavailableError` when their wait has ended.
   * Leases are lost when they expire, unless you call {@link redisUp} first.
   */
  redisDown(): void {
    this.fleet.setDown(true);
  }

  /** Makes Redis reachable again, with all its data. */
  redisUp(): void {
    this.fleet.setDown(false);
  }

  /**
   * Lets time pass, with `clock: 'manual'`. Everything that is due happens at its own time: leases end, waits end,
   * leases are renewed. All effects have settled when it resolves, unless they wait for something other than locks.
   *
   * @param ms the milliseconds to advance
   * @throws TestKitError if the fleet uses the real clock, or if the effects never settle
   */
  async advance(ms: number): Promise<void> {
    checkInteger('the time of advance', ms, 0, Number.MAX_SAFE_INTEGER);
    await this.fleet.advance(ms);
  }

  /**
   * Resolves when nothing of the fleet is in progress: no command, and no release in the background. Calls that wait
   * for a holder, or for time to pass, do not count.
   *
   * @throws TestKitError if commands are still pending after 5 s; the message names them
   */
  idle(): Promise<void> {
    return this.fleet.idle();
  }
}

/** Returns the locks of a fleet from the side of one of its lock services. */
function seenBy({ fleet, instance }: FleetPlace): Pick<LocksUnderTest, 'instanceId' | 'states' | 'unmetFailures'> {
  const { instanceId, server } = instance;
  const { clientId } = instance.stores.locks;
  // A closed one has left the fleet.
  const instances = () => new Set([instance, ...fleet.instances.filter(({ service }) => service === instance.service)]);
  return {
    instanceId,
    states: (): LockState[] => server.held().map((resource) => readLockState(server, resource, clientId)),
    unmetFailures: () =>
      [...instances()].flatMap((each) => each.unmetFailures.map(({ text }) => `${text} of ${each.instanceId}`)),
  };
}
