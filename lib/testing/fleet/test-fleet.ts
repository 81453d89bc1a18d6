import { LockClient } from '../../kernel/lock-client.js';
import { type Clock, SYSTEM_CLOCK } from '../../kernel/util/clock.js';
import { entryOf, sharedByCopies } from '../../kernel/util/objects.js';
import { MemoryServer } from '../../memory/memory-server.js';
import type { TestCommand } from './commands.js';
import { LockLog, LogTelemetry } from './lock-log.js';
import { ManualClock } from './manual-clock.js';
import { SeededRandom } from './seeded-random.js';
import { settle } from '../../kernel/util/promises.js';
import { type Surroundings, TestInstance } from './test-instance.js';
import { TestKitError } from './test-kit-error.js';
import { describeOrders } from '../../kernel/holding/lock-order.js';
import type { LockTelemetry } from '../../kernel/events/telemetry.js';
import type { LockStores } from '../../kernel/lock-stores.js';
import type { TestContext, TestPlace } from '../../nest/service-parts.js';

/** The clock of a test. `manual` only moves with `advance()`. */
export type TestClock = 'real' | 'manual';

/** The time limit of `idle()`, in seconds of real time. */
const IDLE_WITHIN_S = 5;

/** Commands that the error of an endless advance() names. */
const MAX_COMMANDS_NAMED = 3;

/** The named fleets, as long as one of their applications runs. */
const fleets = sharedByCopies('test-fleets:1', () => new Map<string, TestFleet>());

/** Applications of one process that compete for locks like the instances of one application. */
export class TestFleet implements Surroundings {
  readonly clock: Clock;
  /** The clock, if the test moves it. */
  readonly manual: ManualClock | undefined;
  /** The log of the fleet. */
  readonly log: LockLog;
  /** The lock services of the running applications. */
  readonly instances: TestInstance[] = [];
  isDown = false;
  #joined = 0;
  #sent = 0;
  /** The count of each command during the current call of advance(). */
  #sentByCommand: Map<string, number> | undefined;
  /** A Redis for each name of a lock service. */
  readonly #servers = new Map<string, MemoryServer>();
  /** Clients that act as other applications, by service and instance. */
  readonly #elsewhere = new Map<string, LockClient>();
  /** All running instances, including the clients that act as other applications. */
  readonly #watched = new Map<TestInstance, LockClient>();

  constructor(
    readonly name: string | undefined,
    readonly kind: TestClock,
    startsAt?: number,
  ) {
    this.manual = kind === 'manual' ? new ManualClock(startsAt) : undefined;
    this.clock = this.manual ?? SYSTEM_CLOCK;
    const { clock } = this;
    const beganAt = clock.now();
    this.log = new LockLog(() => clock.now() - beganAt);
  }

  /** `true` if its last application has closed. */
  get hasEnded(): boolean {
    return this.#joined > 0 && this.instances.length === 0;
  }

  /**
   * Lets time pass.
   *
   * @throws TestKitError when the clock is the real one, or an earlier call has not ended
   */
  async advance(ms: number): Promise<void> {
    if (!this.manual) {
      throw new TestKitError(
        'realClock',
        `advance(${ms}) needs a clock that a test moves, and this fleet has the real one. Set clock: 'manual' in ` +
          'RedisLockTestingModule.forRoot or withTestLocks.',
      );
    }
    if (this.#sentByCommand) {
      throw new TestKitError(
        'alreadyAdvancing',
        `advance(${ms}) was called before an earlier call of it had ended. A fleet has one time: await each call.`,
      );
    }
    const sent = (this.#sentByCommand = new Map<string, number>());
    try {
      await this.manual.advance(ms);
    } catch (error) {
      throw error instanceof TestKitError && error.code === 'endless' ? withCommands(error, sent) : error;
    } finally {
      this.#sentByCommand = undefined;
    }
  }

  /** The in-memory Redis of the lock services with this name. */
  server(service: string): MemoryServer {
    return entryOf(this.#servers, service, () => new MemoryServer(this.clock));
  }

  /** Adds a lock service of an application. @param instanceId from its options */
  join(service: string, instanceId?: string): TestInstance {
    const instance = this.#create(service, instanceId ?? this.#freeName(service));
    this.instances.push(instance);
    return instance;
  }

  watch(instance: TestInstance, client: LockClient): void {
    const { clock } = instance;
    this.#watched.set(instance, client);
    client.closing.addEventListener('abort', () => void (clock.isClosing = true), { once: true });
  }

  /** Returns a client of its own on the server of this service name: it acts as another application. */
  elsewhere(service: string, instanceId: string): LockClient {
    const id = `${service} ${instanceId}`;
    let client = this.#elsewhere.get(id);
    if (client === undefined) {
      if (this.hasEnded) {
        throw new TestKitError(
          'closed',
          'All applications of this fleet have closed, so holdElsewhere() has no fleet to hold a lock in. Call it before close().',
        );
      }
      const instance = this.#create(service, instanceId);
      const { locks: store, clock, random } = instance.stores;
      const telemetry = [new LogTelemetry(this.log, instanceId)];
      client = new LockClient({ store, clock: clock!, random: random!, service, telemetry });
      this.watch(instance, client);
      this.#elsewhere.set(id, client);
    }
    return client;
  }

  /** Makes Redis unreachable, or reachable again. */
  setDown(isDown: boolean): void {
    if (this.isDown === isDown) return;
    this.isDown = isDown;
    for (const instance of this.#watched.keys()) {
      if (isDown) instance.disconnect();
      else instance.reconnect();
    }
  }

  sent(command: TestCommand): void {
    this.#sent++;
    const counts = this.#sentByCommand;
    if (!counts) return;
    const text = describeCommand(command);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }

  /**
   * Resolves when nothing is in progress, except waits for time or for another holder.
   *
   * @throws TestKitError that names the pending commands, after 5 s of real time
   */
  async idle(): Promise<void> {
    const beganAt = process.uptime();
    for (let sent = -1; ; sent = this.#sent) {
      await settle();
      if (sent === this.#sent && !this.#isBusy()) return;
      if (process.uptime() - beganAt > IDLE_WITHIN_S) throw this.#notIdle();
    }
  }

  #isBusy(): boolean {
    const watched = [...this.#watched];
    if (watched.some(([{ underWay }]) => underWay.size > 0)) return true;
    // With a manual clock, or without Redis, they wait for the test.
    return !this.manual && !this.isDown && watched.some(([, client]) => countReleasing(client) > 0);
  }

  #notIdle(): TestKitError {
    const commands = [...this.#watched.keys()].flatMap(({ underWay }) => [...underWay].map(describeCommand));
    const releases = [...this.#watched].flatMap(([{ instanceId }, client]) => {
      const releases = countReleasing(client);
      return releases > 0 ? [`${releases} releases that ${instanceId} retries`] : [];
    });
    const what = [...commands, ...releases].join(', ') || 'a series of commands without a pause';
    return new TestKitError(
      'notIdle',
      `idle() waited ${IDLE_WITHIN_S} s, and this is still pending: ${what}. If it waits for time to pass, use clock: 'manual' and ` +
        'advance(ms). If it never ends, stop it first.',
    );
  }

  /** Removes an application that has closed. A fleet ends with its last one. */
  left(instance: TestInstance): void {
    this.#watched.delete(instance);
    const index = this.instances.indexOf(instance);
    if (index === -1) return;
    this.instances.splice(index, 1);
    if (this.instances.length > 0) return;
    if (this.name !== undefined && fleets.get(this.name) === this) fleets.delete(this.name);
    for (const client of this.#elsewhere.values()) void client.shutdown(0);
    this.#elsewhere.clear();
  }

  #create(service: string, instanceId: string): TestInstance {
    const random = new SeededRandom(++this.#joined);
    return new TestInstance(instanceId, service, this.server(service), this, random);
  }

  /** Returns a free name: the services of the first application are `app-1`. */
  #freeName(service: string): string {
    const taken = this.instances.filter((each) => each.service === service).map(({ instanceId }) => instanceId);
    for (let number = 1; ; number++) if (!taken.includes(`app-${number}`)) return `app-${number}`;
  }
}

/**
 * Returns the fleet with this name, or a new one.
 *
 * @throws TestKitError if the one with this name has another clock
 */
export function fleetOf(name: string | undefined, kind: TestClock, startsAt?: number): TestFleet {
  const found = name === undefined ? undefined : fleets.get(name);
  if (found?.kind === kind) return found;
  if (found) {
    throw new TestKitError(
      'otherClock',
      `The fleet "${name}" has clock: '${found.kind}', and an application of it asked for '${kind}'. Give all ` +
        'applications of a fleet the same clock, or this one another fleet. A fleet ends when its last application closes. One whose ' +
        'start has failed never closes: give the next test another fleet.',
    );
  }
  const fleet = new TestFleet(name, kind, startsAt);
  if (name !== undefined) fleets.set(name, fleet);
  return fleet;
}

/** Counts unanswered releases, even if no caller waits for them. Visits every lease. */
function countReleasing({ deps: { active, orphanReleases } }: LockClient): number {
  return active.list().filter((hold) => hold.isReleased).length + orphanReleases.size;
}

function describeCommand({ verb, resource, instanceId }: TestCommand): string {
  return `${verb} of "${resource}" by ${instanceId}`;
}

/** Adds the most frequent commands to an error. */
function withCommands({ code, message }: TestKitError, sent: ReadonlyMap<string, number>): TestKitError {
  const most = [...sent].sort(([, one], [, other]) => other - one).slice(0, MAX_COMMANDS_NAMED);
  const frequent = most.map(([text, times]) => `${text} (${times} times)`).join(', ');
  return new TestKitError(
    code,
    frequent === '' ? `${message} No command was sent.` : `${message} Sent most: ${frequent}.`,
  );
}

/** A lock service of an application, in its fleet. */
export class FleetPlace implements TestPlace {
  readonly instance: TestInstance;
  readonly stores: LockStores;
  readonly telemetry: LockTelemetry;
  /** Set after the creation of the client. */
  client: LockClient | undefined;

  constructor(
    readonly fleet: TestFleet,
    { service: name, instanceId, isNamed }: TestContext,
    private readonly throwsOnLockOrder: boolean,
  ) {
    this.instance = fleet.join(name, isNamed ? instanceId : undefined);
    this.stores = this.instance.stores;
    this.telemetry = new LogTelemetry(fleet.log, this.instance.instanceId);
  }

  created(client: LockClient, injected: object): void {
    this.client = client;
    this.instance.injected = injected;
    this.fleet.watch(this.instance, client);
    if (this.throwsOnLockOrder) {
      client.deps.lockOrder.onCycle = (edges) => {
        throw new TestKitError('lockOrder', `${describeOrders(edges)} It is an error because of throwOnLockOrder.`);
      };
    }
  }
}
