import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import type { INestApplicationContext } from '@nestjs/common';
import { type LockState, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import type { Replaced } from '../../../test/support/process/program.js';
import { SeededRandom } from '../../../test/support/world/seeded-random.js';
import { TcpProxy } from '../../../test/support/network/tcp-proxy.js';
import type { History } from '../history/history.js';
import { ClockWatch } from '../history/clock-watch.js';
import { HistoryFolder } from '../history/history-folder.js';
import type { HistoryLog } from '../history/history-log.js';
import { LoopWatch } from '../history/loop-watch.js';
import type { SteppedClock } from '../servers/stepped-clock.js';
import type { WorkerSettings } from '../worker/settings.js';
import { WitnessProcess } from '../witness/witness-process.js';
import { serveWitness } from '../witness/witness-server.js';
import { AnswerWatch } from './answer-watch.js';
import { whatIsLeft } from './leftovers.js';
import type { ChaosServer } from './server.js';
import type { Slot } from './slot.js';
import { WorkerProcess } from './worker-process.js';

export type Work = Pick<WorkerSettings, 'callers' | 'ways' | 'resources' | 'longHolds' | 'campaigns' | 'ticks'>;

export interface WorldSettings {
  readonly seed: number;
  readonly workers: number;
  readonly leaseMs: number;
  readonly work: Work;
  /** A broken file of the library that its workers use. @default none */
  readonly replaced?: Replaced;
  /** `true` if a process reads the queues. A world without one is small. @default true */
  readonly isObserved?: boolean;
  /** Creates a clock for each worker, if clocks are to be moved. */
  readonly newClock?: () => SteppedClock;
}

const KEY_PREFIX = 'lock';

/** A Redis, the workers that lock by it, each behind a network of its own, a witness, and an observer of the queues. */
export class World implements AsyncDisposable {
  /** For the faults. */
  readonly random: SeededRandom;
  readonly slots: Slot[] = [];
  /** Cleanup at the end, in reverse order. */
  readonly #endings: (() => unknown)[] = [];
  readonly #folder = new HistoryFolder();
  readonly #log = this.#folder.logOf('chaos');
  readonly #killed = new Set<WorkerProcess>();
  #view: INestApplicationContext | undefined;
  #observer: WorkerProcess | undefined;

  private constructor(
    readonly redis: ChaosServer,
    readonly settings: WorldSettings,
  ) {
    this.random = new SeededRandom(settings.seed);
  }

  /** Starts everything but Redis, which the caller provides and which outlives this world. */
  static async start(redis: ChaosServer, settings: WorldSettings): Promise<World> {
    const world = new World(redis, settings);
    try {
      await world.#start();
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  get leaseMs(): number {
    return this.settings.leaseMs;
  }

  upTo(limit: number): number {
    return Math.floor(this.random.fraction() * limit);
  }

  oneOf<T>(choices: readonly T[]): T {
    return choices[this.upTo(choices.length)]!;
  }

  get say(): HistoryLog['say'] {
    return this.#log.say.bind(this.#log);
  }

  /** Workers that are alive and not stopped. */
  get awake(): Slot[] {
    return this.slots.filter(({ worker }) => worker.isAlive && !worker.isStopped);
  }

  /** The holders and waiters of a resource; none while Redis has trouble. */
  async look(resource: string): Promise<{ holders: Slot[]; waiters: Slot[] }> {
    const state = await this.#view!.get(RedisLockService)
      .inspect(resource)
      .catch((): Partial<LockState> => ({}));
    const slots = (seen: readonly { instanceId: string }[] = []): Slot[] =>
      seen.flatMap(({ instanceId }) => this.slots.find(({ worker }) => worker.instanceId === instanceId) ?? []);
    return { holders: slots(state.holders), waiters: slots(state.waiters) };
  }

  /** An operator ends the leases that Redis shows; none where it does not answer. */
  async forceRelease(resource: string): Promise<void> {
    const locks = this.#view!.get(RedisLockService);
    const { holders } = await locks.inspect(resource).catch((): Pick<LockState, 'holders'> => ({ holders: [] }));
    await Promise.allSettled(holders.map(({ fencingToken }) => locks.forceRelease(resource, { fencingToken })));
  }

  async kill(slot: Slot): Promise<void> {
    const { worker } = slot;
    this.#killed.add(worker);
    await worker.kill();
    this.say({ type: 'died', victim: worker.instanceId });
  }

  /** SIGTERM, as an orchestrator does it: the application closes and the process ends. */
  async terminate({ worker }: Slot): Promise<void> {
    await worker.close('SIGTERM');
    this.#tellEnd(worker);
  }

  /** Another process takes the place of one that has ended. */
  async replace(slot: Slot): Promise<void> {
    slot.worker = this.#startWorker(`${slot.name}.${++slot.starts}`, {}, slot);
    await slot.worker.ready;
  }

  /** The number of leases granted so far. */
  countHolds(): number {
    return this.#folder.countGrants();
  }

  /** The history so far. */
  heardSoFar(): History {
    return this.#folder.readSoFar();
  }

  /** The folder with all logs. Deleted with the world, unless it is kept. */
  get historyPath(): string {
    return this.#folder.path;
  }

  keepHistory(): void {
    this.#folder.keep();
  }

  /**
   * Closes all applications. Then everything has been said.
   * @param settle what has to be done before what is left can be counted
   */
  async close(settle = (): void => {}): Promise<void> {
    const workers = [...this.slots.map(({ worker }) => worker), ...(this.#observer ? [this.#observer] : [])];
    await Promise.all(workers.map((worker) => worker.close()));
    for (const worker of workers) if (!this.#killed.has(worker)) this.#tellEnd(worker);
    await this.#view!.close();
    settle();
    try {
      this.say({ type: 'leftovers', ...(await whatIsLeft(this.redis.admins, KEY_PREFIX, 4 * this.leaseMs)) });
    } catch (error) {
      this.say({ type: 'crash', error: String(error) });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#endings.reverse().splice(0)) await end();
  }

  async #start(): Promise<void> {
    this.#endings.push(() => this.#folder[Symbol.dispose]());
    // The networks of the workers are in this process: while it stalls, no data arrive.
    const loop = new LoopWatch(this.#log);
    this.#endings.push(() => loop.end());
    const clock = new ClockWatch(this.#log);
    this.#endings.push(() => clock.end());
    await this.#startWitness();
    const options = { ...this.redis.optionsAt(), keyPrefix: KEY_PREFIX, leaseMs: this.leaseMs };
    const view = await NestFactory.createApplicationContext(RedisLockModule.forRoot(options), { logger: false });
    this.#view = view;
    this.#endings.push(() => view.close());
    if (this.settings.isObserved === false) {
      const answers = new AnswerWatch(
        () => this.redis.admins,
        (from) => this.say({ type: 'late', from }),
      );
      this.#endings.push(() => answers.end());
    } else {
      this.#observer = this.#startWorker('observer', { observes: true, callers: 0, campaigns: false, ticks: false });
    }
    for (let i = 1; i <= this.settings.workers; i++) this.slots.push(await this.#newSlot(`w${i}`));
    const workers = [...this.slots.map(({ worker }) => worker), ...(this.#observer ? [this.#observer] : [])];
    await Promise.all(workers.map(({ ready }) => ready));
  }

  /** In a small world it has little to do: less than to start a process for it. */
  async #startWitness(): Promise<void> {
    const history = this.#folder.fileOf('witness');
    if (this.settings.isObserved === false) {
      const server = await serveWitness(this.#socket, history);
      this.#endings.push(() => server.close());
      return;
    }
    const witness = await WitnessProcess.start(this.#socket, history);
    void witness.ended.then(() => this.say({ type: 'crash', error: 'The witness has ended' }));
    this.#endings.push(() => witness[Symbol.asyncDispose]());
  }

  /** Of one that was to end by itself: it did not, or something was wrong with it, perhaps long before it was closed. */
  #tellEnd({ instanceId, exitCode, output }: WorkerProcess): void {
    if (exitCode !== 0)
      this.say({ type: 'crash', error: `${instanceId} did not end well after it was closed (${exitCode})` });
    if (output) this.say({ type: 'crash', error: `${instanceId} wrote: ${output}` });
  }

  get #socket(): string {
    return join(this.#folder.path, 'witness.sock');
  }

  async #newSlot(name: string): Promise<Slot> {
    const { redis, settings } = this;
    const proxies = await Promise.all(redis.ports.map((port) => TcpProxy.start(port)));
    for (const proxy of proxies) this.#endings.push(() => proxy[Symbol.asyncDispose]());
    const clock = settings.newClock?.();
    if (clock) this.#endings.push(() => clock[Symbol.dispose]());
    const place = { name, starts: 1, proxies, ...(clock && { clock }) };
    return Object.assign(place, { worker: this.#startWorker(`${name}.1`, {}, place) });
  }

  #startWorker(instanceId: string, changes: Partial<WorkerSettings>, place?: Omit<Slot, 'worker'>): WorkerProcess {
    const { settings, redis } = this;
    const worker = new WorkerProcess(
      {
        instanceId,
        server: redis.optionsAt(place?.proxies.map(({ port }) => port)),
        keyPrefix: KEY_PREFIX,
        leaseMs: this.leaseMs,
        history: this.#folder.fileOf(instanceId),
        witness: this.#socket,
        seed: settings.seed * 1_000 + seedOf(instanceId),
        ...settings.work,
        ...changes,
      },
      { ...place?.clock?.env },
      settings.replaced,
    );
    this.#endings.push(() => worker.kill());
    return worker;
  }
}

/** The same for the same name. */
function seedOf(instanceId: string): number {
  return Buffer.from(instanceId).reduce((sum, byte) => (sum * 31 + byte) % 1_000, 0);
}
