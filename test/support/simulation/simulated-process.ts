import type { Clock, Timer } from '../../../lib/kernel/util/clock.js';
import type { FakeClock } from '../world/fake-clock.js';
import { failing, type Fate, type GrantFate, lostOnTheWay, type ScriptedStore } from '../world/scripted-store.js';
import type { SeededRandom } from '../world/seeded-random.js';

/** The clock of a process: starts anywhere and runs slightly too fast or too slow. */
export class ProcessClock implements Clock {
  #state: 'awake' | 'still' | 'dead' = 'awake';
  #missed: (() => void)[] = [];
  /** When it last resumed, by the clock of the world. */
  wokeAt = 0;
  /** The lead of its wall clock. */
  wallSkewMs = 0;

  constructor(
    private readonly world: FakeClock,
    private readonly beganAt: number,
    readonly rate: number,
  ) {}

  now(): number {
    return this.beganAt + this.world.now() * this.rate;
  }

  wallNow(): number {
    return this.world.wallNow() + this.wallSkewMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    let isCancelled = false;
    const ring = (): void => {
      if (!isCancelled) callback();
    };
    const timer = this.world.setTimer(() => this.whenAwake(ring), Math.ceil(delayMs / this.rate));
    return {
      cancel: () => {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  /** Runs it now, or when the process resumes. */
  whenAwake(callback: () => void): void {
    if (this.#state === 'awake') callback();
    else if (this.#state === 'still') this.#missed.push(callback);
  }

  get isAwake(): boolean {
    return this.#state === 'awake';
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  /** SIGSTOP: no timer runs and nothing is read, while time passes. */
  stop(): void {
    if (this.#state === 'awake') this.#state = 'still';
  }

  /** SIGCONT: all that it missed comes at once. */
  continue(): void {
    if (this.#state !== 'still') return;
    this.#state = 'awake';
    this.wokeAt = this.world.now();
    for (const callback of this.#missed.splice(0)) this.setTimer(callback, 0);
  }

  /** SIGKILL. */
  kill(): void {
    this.#state = 'dead';
    this.#missed = [];
  }
}

export interface NetworkOptions {
  /** The probability of a fault of a command or a message, 0 to 1. */
  readonly trouble: number;
  /**
   * - `inOrder`: commands are executed in the order they were sent, each at most once; they and their replies may be lost.
   * - `unordered`: they may also change places, and be executed twice.
   * - `lossless`: they and their replies may change places, but each is executed once, and answered.
   */
  readonly kind: 'inOrder' | 'unordered' | 'lossless';
  /** The longest delay. */
  readonly delayMs: number;
}

/** The number of the fates below that a network has. */
const FATES = { lossless: 4, inOrder: 8, unordered: 9 };
const USUAL_DELAY_MS = 4;
/** The maximum time until a process detects lost messages, and until they arrive again. */
const LOSS_FOUND_MS = 3_000;
const RECONNECTED_MS = 1_000;
const never = new Promise<never>(() => {});

/** The network between one process and the store. */
export class Network {
  #lastRequestAt = 0;
  #lastReplyAt = 0;
  /** Commands have no trouble from now on; messages are lost as before. */
  isHealed = false;

  constructor(
    private readonly world: FakeClock,
    private readonly process: ProcessClock,
    private readonly random: SeededRandom,
    private readonly options: NetworkOptions,
  ) {}

  upTo(limit: number): number {
    return Math.floor(this.random.fraction() * limit);
  }

  /** Called when a message is lost. */
  #onLost: () => void = () => {};
  /** The number of unanswered commands. */
  inFlight = 0;

  readonly commandFate: Fate = (execute) => {
    this.inFlight++;
    return this.#sent(execute).finally(() => this.inFlight--);
  };

  readonly #sent: Fate = (execute) => {
    const { trouble, kind, delayMs } = this.options;
    if (this.isHealed || this.random.fraction() >= trouble) return this.#carry(execute);
    switch (this.upTo(FATES[kind])) {
      case 0:
        return this.#carry(execute, this.upTo(delayMs));
      case 1:
        return this.#carry(execute, undefined, this.upTo(delayMs));
      case 2:
        return this.#carry(execute, this.upTo(delayMs), this.upTo(delayMs));
      case 3:
        return this.#fails(failing('notExecuted')(execute));
      case 4:
        return lostOnTheWay(execute);
      case 5:
        return this.#carry(execute).then(() => never);
      case 6:
        return this.#fails(failing('unknown')(execute));
      case 7:
        this.#request(execute, this.upTo(delayMs)).catch(() => {});
        return this.#fails(failing('unknown')(execute));
      default:
        this.#request(execute, this.upTo(delayMs)).catch(() => {}); // a second time
        return this.#carry(execute);
    }
  };

  readonly grantFate: GrantFate = (deliver) => {
    const { trouble, kind, delayMs } = this.options;
    const arriveIn = (ms: number): void => {
      this.world.setTimer(() => this.process.whenAwake(deliver), ms);
    };
    if (this.random.fraction() >= trouble) return arriveIn(this.upTo(USUAL_DELAY_MS));
    const fate = this.upTo(3);
    if (fate > 0 || kind === 'lossless') arriveIn(this.upTo(delayMs));
    else this.#onLost();
    if (fate > 1) arriveIn(this.upTo(delayMs)); // a second time
  };

  /** Sets the fates of the process's store. Its probes detect a lost message a while later. */
  connect(store: ScriptedStore): void {
    store.all(this.commandFate);
    store.grantFate = this.grantFate;
    const { hearing } = store;
    let isKnown = false;
    this.#onLost = () => {
      if (isKnown) return;
      isKnown = true;
      const later = (limitMs: number, then: () => void) =>
        this.world.setTimer(() => this.process.whenAwake(then), this.upTo(limitMs));
      later(LOSS_FOUND_MS, () => {
        hearing!.trustedForMs = 0;
        store.unprove();
        later(RECONNECTED_MS, () => {
          isKnown = false;
          hearing!.trustedForMs = Infinity;
          store.reconnect();
        });
      });
    };
  }

  /** The delay of a reply that arrives after all earlier ones. */
  #returnIn(ms: number): number {
    const now = this.world.now();
    this.#lastReplyAt = Math.max(now + ms, this.#lastReplyAt);
    return this.#lastReplyAt - now;
  }

  async #carry<T>(
    execute: () => Promise<T>,
    thereMs = this.upTo(USUAL_DELAY_MS),
    backMs = this.upTo(USUAL_DELAY_MS),
  ): Promise<T> {
    const reply = await this.#request(execute, thereMs);
    await this.#pass(this.options.kind === 'inOrder' ? this.#returnIn(backMs) : backMs);
    await this.#isRead();
    return reply;
  }

  async #request<T>(execute: () => Promise<T>, thereMs: number): Promise<T> {
    const now = this.world.now();
    const isInOrder = this.options.kind === 'inOrder';
    const at = isInOrder ? Math.max(now + thereMs, this.#lastRequestAt) : now + thereMs;
    this.#lastRequestAt = at;
    await this.#pass(at - now);
    return execute();
  }

  async #fails<T>(error: Promise<T>): Promise<T> {
    error.catch(() => {});
    await this.#pass(this.upTo(USUAL_DELAY_MS));
    await this.#isRead();
    return error;
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.world.setTimer(resolve, ms));
  }

  #isRead(): Promise<void> {
    return new Promise((resolve) => this.process.whenAwake(resolve));
  }
}
