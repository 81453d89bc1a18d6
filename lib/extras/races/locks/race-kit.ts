import { entryOf } from '../../../kernel/util/objects.js';
import type { LockDefaults } from '../../../kernel/api/lock-options.js';
import { byResource, findCycles } from '../../../kernel/deadlocks/cycles.js';
import type { LockClientOptions } from '../../../kernel/wire.js';
import { MemoryServer, readLockState } from '../../../memory/memory-server.js';
import type { ResolvedModuleOptions } from '../../../nest/module/module-options.js';
import { RedisLockService } from '../../../nest/redis-lock.service.js';
import {
  DEFAULT_NAME,
  type ForwardedTo,
  getRedisLockOptionsToken,
  getRedisLockToken,
  partsOf,
} from '../../../nest/service-parts.js';
import { ManualClock } from '../../../testing/fleet/manual-clock.js';
import { type ActorTurns, ANYTHING, currentActor, EVERYTHING, NOTHING } from '../schedule/race-context.js';
import { RaceToolError } from '../schedule/race-errors.js';
import type { Fault } from '../schedule/schedule.js';
import { ActorProcess } from './actor-process.js';

/**
 * A fault of an actor. `kill`: its process dies. `stall`: it is blocked for longer than its lease. `lose`: its locks
 * are lost.
 */
export type FaultKind = 'kill' | 'stall' | 'lose';

/** The process of code that belongs to no actor: the setup and the invariant. */
const OUTSIDE = 'outside';

/** An application, or a `TestingModule`. */
export interface AppWithLocks {
  get<T>(token: string, options: { strict: false }): T;
}

/**
 * The clock and the locks of one schedule, which is one order of the actors' steps. The setup function gets a new kit
 * for each schedule.
 */
export class RaceKit {
  readonly #clock = new ManualClock();
  readonly #servers = new Map<string, MemoryServer>();
  readonly #processes: ActorProcess[] = [];
  readonly #undo: (() => void)[] = [];
  #turns: ActorTurns | undefined;
  #isTimerTurn = false;
  /** @internal A description of the deadlock, if time had to pass because actors wait for each other. */
  deadlock: string | undefined;
  #names = 0;

  /**
   * Returns the time by the clock of the schedule, in epoch milliseconds. The clock advances only if nothing else can
   * happen.
   */
  now(): number {
    return this.#clock.wallNow();
  }

  /**
   * Returns a new lock service with the locks of this schedule. Each actor that uses it acts as a separate process,
   * with its own lock client, clock and place in the queue.
   *
   * @param defaults lock options for calls that set none
   */
  locks(defaults: Partial<LockDefaults> = {}): RedisLockService {
    const name = this.#names++ === 0 ? DEFAULT_NAME : `service${this.#names}`;
    return new RedisLockService({ ...this.#parts(name, { defaults }), drainMs: 0 });
  }

  /**
   * Makes the lock service of an application use the locks of this schedule until the schedule ends. So you can start
   * the application once and use it in every schedule: each one begins with no locks and a new clock. The other options
   * of the application stay the same.
   *
   * @param app the application, or the `TestingModule`
   * @param name the `service` of the registration; without it, the default one
   * @throws RaceToolError if the application has no lock service with this name
   */
  use(app: AppWithLocks, name: string = DEFAULT_NAME): RedisLockService {
    const [service, options] = found(app, name);
    const { defaults, group, labelGroups, suspiciousNames, transactions } = options;
    const parts = partsOf(service)!;
    const { client, singletonRuns, once } = parts;
    Object.assign(parts, this.#parts(name, { defaults, group, labelGroups, suspiciousNames, transactions }));
    this.#undo.push(() => void Object.assign(parts, { client, singletonRuns, once }));
    return service;
  }

  /**
   * Waits by the clock of the schedule, for example until the next poll. Time passes only when no actor can continue.
   *
   * @param ms the milliseconds to wait
   */
  async sleep(ms: number): Promise<void> {
    const context = currentActor();
    const elapsed = new Promise<void>((resolve) => this.#clock.setTimer(resolve, ms));
    if (context === undefined) {
      throw new RaceToolError(
        'OUTSIDE_AN_ACTOR',
        'sleep() is for actors: no time passes in the setup or the invariant',
      );
    }
    context.schedule.waits.set(context.actor, `${ms} ms to pass`);
    await elapsed;
    await context.schedule.point(context.actor, `has slept for ${ms} ms`, ANYTHING);
  }

  #server(name: string): MemoryServer {
    return entryOf(this.#servers, name, () => new MemoryServer(this.#clock));
  }

  /** Returns parts that forward to the actor that uses them. */
  #parts(service: string, options: Partial<LockClientOptions>): ForwardedTo {
    const byActor = new Map<string, ActorProcess>();
    const own = (): ForwardedTo => {
      const name = currentActor()?.actor.name ?? OUTSIDE;
      return entryOf(byActor, name, () => this.#process(name, service, options)).parts;
    };
    const first = own();
    return {
      client: forwarding(first.client, () => own().client),
      singletonRuns: forwarding(first.singletonRuns, () => own().singletonRuns),
      once: forwarding(first.once, () => own().once),
    };
  }

  #process(name: string, service: string, options: Partial<LockClientOptions>): ActorProcess {
    const timing = { clock: this.#clock, turns: () => this.#turns, isTimerTurn: () => this.#isTimerTurn };
    const process = new ActorProcess(name, service, this.#server(service), timing, options);
    this.#processes.push(process);
    return process;
  }

  /** @internal */
  begin(turns: ActorTurns): void {
    this.#turns = turns;
  }

  /** @internal Ends the schedule, and restores the original parts of the applications. */
  end(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  /** @internal */
  nextInMs(): number | undefined {
    return this.#clock.nextTimerMs;
  }

  /** @internal */
  async step(): Promise<void> {
    this.deadlock ??= findDeadlock(this.#servers);
    this.#isTimerTurn = true;
    await this.#clock.advance(this.#clock.nextTimerMs ?? 0);
    this.#isTimerTurn = false;
  }

  /** @internal Resumes an actor that was stalled: timers that are due fire after its first step. */
  afterStep(actor: string): void {
    for (const process of this.#processes) if (process.name === actor) process.clock.resume();
  }

  /** @internal Returns the faults that are possible now for an actor at a point. */
  faults(kinds: readonly FaultKind[], actors: Iterable<string>): Fault[] {
    return [...actors].flatMap((actor) => kinds.flatMap((kind) => this.#fault(kind, actor) ?? []));
  }

  #fault(kind: FaultKind, actor: string): Fault | undefined {
    const own = this.#processes.filter(({ name }) => name === actor);
    const id = `${kind} ${actor}`;
    if (kind === 'kill') {
      const happen = (): void => this.#turns!.kill(actor);
      return { id, actor, text: 'is killed', access: NOTHING, happen };
    }
    const held = own.flatMap((process) => process.held().map((lease) => ({ ...lease, process })));
    if (held.length === 0) return undefined;
    if (kind === 'lose') {
      const happen = async (): Promise<void> => {
        for (const { process, resource, fencingToken } of held) await process.lose(resource, fencingToken);
      };
      const text = `loses ${held.map(({ resource }) => resource).join(', ')}`;
      return { id, actor, text, access: EVERYTHING, happen };
    }
    const longestMs = Math.ceil(Math.max(...held.map(({ ttlMs }) => ttlMs))) + 1;
    const happen = async (): Promise<void> => {
      for (const { clock } of own) clock.block(longestMs);
      for (const { process, resource, fencingToken } of held) await process.expire(resource, fencingToken);
    };
    return { id, actor, text: `is blocked for ${longestMs} ms`, access: EVERYTHING, happen };
  }
}

/** Returns an object that forwards every call to another one. */
function forwarding<T extends object>(first: T, current: () => T): T {
  return new Proxy(first, {
    get(_, property) {
      const target = current();
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function found(app: AppWithLocks, name: string): [RedisLockService, ResolvedModuleOptions] {
  const strict = { strict: false } as const;
  try {
    const options = app.get<ResolvedModuleOptions>(getRedisLockOptionsToken(name), strict);
    return [app.get<RedisLockService>(getRedisLockToken(name), strict), options];
  } catch (cause) {
    throw new RaceToolError(
      'NO_LOCK_SERVICE',
      `use(app): the application has no lock service called "${name}". Import RedisLockModule, or ` +
        'RedisLockTestingModule, and pass the name of the registration if it has one',
      { cause },
    );
  }
}

/**
 * Looks for actors that wait for each other in a cycle. Only their `waitMs` ends such waits.
 *
 * @param servers by the names of their lock services
 * @returns the waits of each of them, for the story
 */
function findDeadlock(servers: ReadonlyMap<string, MemoryServer>): string | undefined {
  const states = [...servers].flatMap(([service, server]) =>
    server.held().map((name) => ({ ...readLockState(server, name, ''), name, resource: `${service} ${name}` })),
  );
  // The mode makes no difference: time passes only if no actor can continue.
  const mode = 'exclusive' as const;
  const waits = states.flatMap(({ name, resource, waiters }) =>
    waiters.map(({ instanceId }) => {
      const held = states.filter(({ holders }) => holders.some((holder) => holder.instanceId === instanceId));
      const holds = held.map((state) => ({ resource: state.resource, mode }));
      return { instanceId, isThisProcess: true, group: '', name, resource, mode, holds };
    }),
  );
  const alone = waits.find(({ resource, holds }) => holds.some((hold) => hold.resource === resource));
  const [cycle] = alone ? [[alone]] : findCycles(byResource(waits));
  return cycle
    ?.map(({ instanceId, name }, index) => {
      const next = cycle[index + 1] ?? cycle[0]!;
      return `${instanceId} waits for ${name}, which ${next.instanceId} holds`;
    })
    .join('; ');
}
