import { OnceCalls } from '../../../features/once/core/once-calls.js';
import { LockClient } from '../../../kernel/lock-client.js';
import type { LockClientOptions } from '../../../kernel/wire.js';
import { inRootContext } from '../../../kernel/util/async-contexts.js';
import type { Clock, Timer } from '../../../kernel/util/clock.js';
import { instanceOf } from '../../../kernel/store/ask.js';
import type { MemoryServer } from '../../../memory/memory-server.js';
import type { ForwardedTo } from '../../../nest/service-parts.js';
import type { Gate, TestCommand, Verb } from '../../../testing/fleet/commands.js';
import { SeededRandom } from '../../../testing/fleet/seeded-random.js';
import { TestInstance } from '../../../testing/fleet/test-instance.js';
import { type Access, type Actor, type ActorTurns, ANYTHING, currentActor, NOTHING } from '../schedule/race-context.js';

/** Commands as the story words them. */
const VERB_TEXT: Partial<Record<Verb, string>> = {
  acquire: 'asks for',
  keep: 'keeps its places for',
  rotate: 'passes on',
  renew: 'renews',
  release: 'releases',
  retain: 'releases',
  claim: 'claims the tick of',
  finish: 'finishes the tick of',
  giveBack: 'gives back the tick of',
  verify: 'verifies',
  inspect: 'inspects',
  forceRelease: 'force-releases',
  watch: 'watches',
  job: 'asks for the job',
  result: 'looks for the result of',
};

/** Commands that change nothing. */
const READS: readonly Verb[] = ['verify', 'inspect', 'list'];

const NEVER = new Promise<never>(() => {});

interface Timing {
  readonly clock: Clock;
  readonly turns: () => ActorTurns | undefined;
  /** `true` while the clock of the schedule advances: a command that is sent then comes from a timer. */
  readonly isTimerTurn: () => boolean;
}

/** The parts behind a lock service while a schedule runs: each actor has a lock client, as if it were a process. */
export class ActorProcess {
  readonly clock: ProcessClock;
  readonly parts: ForwardedTo;
  readonly #instance: TestInstance;
  readonly #client: LockClient;
  /** The depths of reentrant locks, by owner id. */
  readonly #depths = new Map<string, number>();

  constructor(
    readonly name: string,
    readonly service: string,
    private readonly server: MemoryServer,
    private readonly timing: Timing,
    options: Partial<LockClientOptions>,
  ) {
    this.clock = new ProcessClock(timing.clock);
    const random = new SeededRandom(Buffer.from(name).reduce((sum, byte) => (sum * 31 + byte) | 0, 7));
    const surroundings = { clock: this.clock, isDown: false, sent: () => {}, left: () => {} };
    this.#instance = new TestInstance(name, service, server, surroundings, random);
    this.#instance.gate = this.#gate;
    const { locks, jobs, results } = this.#instance.stores;
    this.#client = new LockClient({ ...options, service, store: locks, clock: this.clock, random });
    const singletonRuns = this.#client.jobs.runs(jobs);
    const { deps, leases, watches } = this.#client;
    const once = new OnceCalls(deps, leases, watches, results, options.suspiciousNames);
    this.parts = { client: this.#client, singletonRuns, once };
  }

  /** Returns its leases, as the server has them. */
  held(): { resource: string; fencingToken: number; ttlMs: number }[] {
    const { server } = this;
    return server.held().flatMap((resource) => {
      const own = server.members(resource).filter(({ owner }) => instanceOf(owner) === this.name && !isKept(owner));
      return own.map(({ fencingToken, ttlMs }) => ({ resource, fencingToken, ttlMs }));
    });
  }

  /** Expires its lease in the store, without a message to the actor. */
  async expire(resource: string, fencingToken: number): Promise<void> {
    await this.#instance.stores.locks.forceRelease(resource, fencingToken);
  }

  /** Removes its lease from the store, and notifies the actor at once. */
  async lose(resource: string, fencingToken: number): Promise<void> {
    await this.expire(resource, fencingToken);
    for (const holder of this.#client.deps.watchdog.holdersOf(resource)) holder.lose('takenOver');
  }

  readonly #gate: Gate = async (verb, resource, execute, command) => {
    const turns = this.timing.turns();
    const actor = turns?.actors.find(({ name }) => name === this.name);
    if (turns === undefined || actor === undefined) return execute();
    if (turns.hasEnded || actor.state === 'killed') return NEVER;
    if (verb === 'grant') return this.#notify(turns, actor, resource, execute);
    // Sent by a timer, such as a renewal, so there is no choice to make.
    if (currentActor()?.actor !== actor && !this.#isOwnAccord(verb))
      return this.#sendByTimer(turns, actor, resource, verb, execute);
    return this.#send(turns, actor, command, execute);
  };

  /** Sends without a choice, but the story shows that the actor has the lock then. */
  async #sendByTimer<T>(
    turns: ActorTurns,
    actor: Actor,
    resource: string,
    verb: Verb,
    execute: () => Promise<T>,
  ): Promise<T> {
    const answer = await execute();
    if (verb !== 'acquire' || (answer as { status?: unknown } | undefined)?.status !== 'granted') return answer;
    this.#noteTokens(turns, actor, resource);
    turns.addLine(actor, `gets ${resource}`);
    return answer;
  }

  #noteTokens(turns: ActorTurns, actor: Actor, resource: string): void {
    for (const each of this.held()) if (each.resource === resource) turns.granted(actor, each.fencingToken);
  }

  #describe({ verb, resource, owner = '', depth }: TestCommand): string {
    if (depth === undefined || verb !== 'setDepth') return `${VERB_TEXT[verb] ?? verb} ${resource}`;
    const isDeeper = depth > (this.#depths.get(owner) ?? 1);
    this.#depths.set(owner, depth);
    return isDeeper ? `re-enters ${resource}` : `leaves its re-entry of ${resource}`;
  }

  /**
   * Returns true for commands of a campaign: it asks and releases outside of the code that began it, and their order
   * matters.
   */
  #isOwnAccord(verb: Verb): boolean {
    return (verb === 'acquire' || verb === 'release') && !this.timing.isTimerTurn();
  }

  /** Delivers a message of the store. */
  async #notify<T>(turns: ActorTurns, actor: Actor, resource: string, execute: () => Promise<T>): Promise<T> {
    // Never in the async context of the actor that caused the message.
    if (turns.waits.get(actor) !== waitFor(resource)) return inRootContext(execute);
    const isGranted = this.held().some((each) => each.resource === resource);
    if (isGranted) this.#noteTokens(turns, actor, resource);
    const text = isGranted ? `gets ${resource}` : `is notified of ${resource}`;
    await turns.point(actor, text, turns.onlyNamed ? NOTHING : ANYTHING);
    return inRootContext(execute);
  }

  /** Makes two steps of a command: it is executed, and the actor gets the reply. */
  async #send<T>(turns: ActorTurns, actor: Actor, command: TestCommand, execute: () => Promise<T>): Promise<T> {
    const { verb, resource } = command;
    const access: Access = {
      object: `${this.service} ${resource}`,
      writes: !READS.includes(verb),
      isCommand: true,
    };
    const note = await turns.point(actor, this.#describe(command), access);
    const answer = await execute();
    this.#noteTokens(turns, actor, resource);
    const { text, next } = readAnswer(verb, answer);
    note.add(text);
    // Code of the actor runs next, and may touch anything.
    if (next !== 'waits' && !turns.onlyNamed) await turns.unnamedPoint(actor, 'gets the reply');
    if (next !== 'continues') turns.waits.set(actor, waitFor(resource));
    return answer;
  }
}

/** Returns true if the owner has released it, and it stays taken for its `minHoldMs`: see retain.lua. */
function isKept(owner: string): boolean {
  return /\/[0-9a-f]{40}$/.test(owner);
}

function waitFor(resource: string): string {
  return `the lock ${resource}`;
}

/**
 * Returns a reply in the words of the story, and whether the actor continues, waits for a message, or may do either.
 */
function readAnswer(verb: Verb, answer: unknown): { text: string; next: 'continues' | 'waits' | 'mayWait' } {
  const { status } = (answer ?? {}) as { status?: unknown };
  if (verb === 'watch') return { text: '', next: 'mayWait' };
  if (verb === 'claim')
    return {
      text: status === 'granted' ? ' and gets it' : `: ${String(status)}`,
      next: status === 'granted' ? 'continues' : 'mayWait',
    };
  if (verb !== 'acquire') return { text: '', next: 'continues' };
  if (status === 'granted') return { text: ' and gets it', next: 'continues' };
  return { text: ' and finds it held', next: status === 'queued' ? 'waits' : 'mayWait' };
}

/** A timer of a process, in the time of that process. */
interface ProcessTimer {
  readonly dueAt: number;
  readonly callback: () => void;
  timer: Timer | undefined;
}

/**
 * The clock of one process among several. `block()` stops it while the others continue. Afterwards more time has passed
 * for it, and the timers that were due fire late.
 */
export class ProcessClock implements Clock {
  /** The time by which this process is ahead of the others. */
  #aheadMs = 0;
  #isBlocked = false;
  readonly #timers = new Set<ProcessTimer>();

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now() + this.#aheadMs;
  }

  wallNow(): number {
    return this.clock.wallNow() + this.#aheadMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const timer: ProcessTimer = { dueAt: this.now() + delayMs, callback, timer: undefined };
    this.#timers.add(timer);
    if (!this.#isBlocked) this.#arm(timer);
    return { cancel: () => this.#disarm(timer) };
  }

  #arm(timer: ProcessTimer): void {
    const fire = (): void => {
      this.#disarm(timer);
      timer.callback();
    };
    timer.timer = this.clock.setTimer(fire, timer.dueAt - this.now());
  }

  #disarm(timer: ProcessTimer): void {
    this.#timers.delete(timer);
    timer.timer?.cancel();
  }

  block(ms: number): void {
    this.#isBlocked = true;
    this.#aheadMs += ms;
    for (const { timer } of this.#timers) timer?.cancel();
  }

  /** Fires the timers that were due while it was blocked. */
  resume(): void {
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    const timers = [...this.#timers].sort((one, other) => one.dueAt - other.dueAt);
    for (const timer of timers) {
      // A timer that fired may have cancelled this one.
      if (!this.#timers.has(timer)) continue;
      if (timer.dueAt > this.now()) this.#arm(timer);
      else {
        this.#disarm(timer);
        timer.callback();
      }
    }
  }
}
