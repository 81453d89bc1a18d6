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

/** What a test sees and does with the locks of an application. */
export class TestLocks extends LockAssertions {
  /** Fires the singleton jobs of the fleet. */
  readonly jobs: TestJobs;

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

  /** What happened to the locks of the fleet, in its order. `locks.log.toString()` tells it as a story. */
  get log(): LockLog {
    return this.fleet.log;
  }

  /**
   * Lets another application of the fleet hold a resource, until `release()` of what it resolves to. It renews its lease.
   * With `'leader:mailer'`, another one is the leader; with `'cron:nightly'`, the job runs there.
   *
   * @throws LockBusyError if the resource is held, and it does not wait
   */
  holdElsewhere(resource: string, options: HoldElsewhereOptions = {}): Promise<HeldElsewhere> {
    return holdElsewhere(this.fleet, this.place.instance.service, resource, options);
  }

  /**
   * The application loses a lease, as it would with Redis: its `signal` aborts with a `LeaseLostError`, and the next
   * waiter is granted the resource. Resolves when what that sets off has settled.
   *
   * @param lost a lease, or a resource that the application holds. Readers of one application share a lease, so all of them
   *   lose it
   * @param reason `LeaseLostError.reason`: `'takenOver'`, `'notRenewed'`, `'expired'` or `'maxHold'`
   * @throws TestKitError if the application does not hold it
   */
  lose(lost: string | Lease, reason: TestLossReason = 'takenOver'): Promise<void> {
    return lose(this.place, lost, reason);
  }

  /**
   * Lets the next command of the application that acquires, renews or releases a lock, or claims a tick, fail. A failure
   * that meets no command is told by {@link expectNothingHeld}.
   *
   * @param failure an error: the store refuses the command, and says why by its message. Or how far the command gets:
   *   `'notExecuted'` (sent again), `'unknown'` (executed, and its answer is lost) or `'refused'`
   * @param resource only a command of this resource fails; for `'claim'`, of the job with this name
   * @throws InvalidLockOptionsError if an argument is invalid
   */
  failNext(verb: FailingVerb, failure: TestFailure = 'refused', resource?: string): void {
    this.place.instance.fail(planFailure(verb, failure, resource));
  }

  /**
   * No application of the fleet can reach Redis from now on. New calls fail with `LockUnavailableError` when their wait is
   * over. Leases are lost when their time is over, unless {@link redisUp} is called before.
   */
  redisDown(): void {
    this.fleet.setDown(true);
  }

  /** Redis can be reached again, with all that it had. */
  redisUp(): void {
    this.fleet.setDown(false);
  }

  /**
   * Lets time pass, with `clock: 'manual'`. What falls due in it happens at its own time: leases end, waits end, leases
   * are renewed. All that this sets off has settled when it resolves, unless it waits for something else than locks.
   *
   * @param ms how many milliseconds
   * @throws TestKitError when the clock of the fleet is the real one, or when it goes on without an end
   */
  async advance(ms: number): Promise<void> {
    checkInteger('the time of advance', ms, 0, Number.MAX_SAFE_INTEGER);
    await this.fleet.advance(ms);
  }

  /**
   * Resolves when nothing of the fleet is under way: no command, and no release in the background. A call that waits for
   * a holder, or for time, is not under way.
   *
   * @throws TestKitError that names what is under way, after 5 s
   */
  idle(): Promise<void> {
    return this.fleet.idle();
  }
}

/** What is held by the applications of a fleet, as a lock service of one of them would find it. */
function seenBy({ fleet, instance }: FleetPlace): Pick<LocksUnderTest, 'instanceId' | 'states' | 'unmetFailures'> {
  const { instanceId, server } = instance;
  const { clientId } = instance.stores.locks;
  // One that has closed is no longer of the fleet.
  const instances = () => new Set([instance, ...fleet.instances.filter(({ service }) => service === instance.service)]);
  return {
    instanceId,
    states: (): LockState[] => server.held().map((resource) => readLockState(server, resource, clientId)),
    unmetFailures: () =>
      [...instances()].flatMap((each) => each.unmetFailures.map(({ text }) => `${text} of ${each.instanceId}`)),
  };
}
