import type { Clock, Timer } from './clock.js';
import { type Due, DueQueue } from './due-queue.js';

/** Something to do at a time. Set, moved and cancelled through {@link Alarms}. */
export class Alarm implements Due {
  dueAt = 0;
  heapIndex = -1;

  constructor(readonly ring: () => void) {}
}

/**
 * Any number of alarms on one timer. Setting and cancelling one for each command costs a fraction of a timer of its own: the
 * timer stays where it is as long as it is early enough.
 */
export class Alarms {
  readonly #queue = new DueQueue<Alarm>();
  #timer: Timer | undefined;
  #wakesAt = Infinity;

  constructor(private readonly clock: Clock) {}

  /** How many are set. */
  get size(): number {
    return this.#queue.size;
  }

  /** Rings once at that time on the monotonic clock. An alarm that is set already is moved; `Infinity` cancels it. */
  set(alarm: Alarm, at: number): void {
    if (at === Infinity) return this.cancel(alarm);
    alarm.dueAt = at;
    this.#queue.put(alarm);
    if (at < this.#wakesAt) this.#arm(at);
  }

  cancel(alarm: Alarm): void {
    this.#queue.remove(alarm);
  }

  /** Stops the timer. Nothing rings after this, unless an alarm is set anew. */
  stop(): void {
    this.#timer?.cancel();
    this.#wakesAt = Infinity;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#wakesAt = at;
    this.#timer = this.clock.setTimer(() => this.#ring(), at - this.clock.now());
  }

  #ring(): void {
    this.#wakesAt = Infinity;
    const now = this.clock.now();
    for (let alarm = this.#queue.first(); alarm && alarm.dueAt <= now; alarm = this.#queue.first()) {
      this.#queue.remove(alarm);
      alarm.ring();
    }
    const next = this.#queue.first();
    if (next && next.dueAt < this.#wakesAt) this.#arm(next.dueAt);
  }
}
