import type { Clock, Timer } from './clock.js';
import { type Due, DueQueue } from './due-queue.js';

/** Something to do at a time. Set, moved and cancelled through {@link Alarms}. */
export interface Alarm extends Due {
  ring(): void;
}

export function alarmThat(ring: () => void): Alarm {
  return { dueAt: 0, heapIndex: -1, ring };
}

/**
 * Any number of alarms on one timer. Setting and cancelling one for each command costs a fraction of a timer of its
 * own: the timer stays where it is as long as it is early enough.
 */
export class Alarms {
  readonly #queue = new DueQueue<Alarm>();
  #timer: Timer | undefined;
  #wakesAt = Infinity;
  /** Whether its timer alone is no reason to keep the process alive. */
  #inBackground = false;

  constructor(private readonly clock: Clock) {}

  /** How many are set. */
  get size(): number {
    return this.#queue.size;
  }

  /** Whether it is of no use to wait for a better time. */
  get isStopped(): boolean {
    return this.#inBackground;
  }

  /** Rings once at that time on the monotonic clock. An alarm that is set already is moved; `Infinity` cancels it. */
  set(alarm: Alarm, at: number): void {
    if (at === Infinity) return this.cancel(alarm);
    alarm.dueAt = at;
    this.#queue.put(alarm);
    if (at < this.#wakesAt) this.#arm(at);
  }

  /** Rings once, `delayMs` from now. */
  setIn(alarm: Alarm, delayMs: number, now = this.clock.now()): void {
    this.set(alarm, now + delayMs);
  }

  cancel(alarm: Alarm): void {
    this.#queue.remove(alarm);
  }

  /**
   * Rings every alarm that is set, so that no caller waits for a time that may never come. What is set after this rings
   * in its time, but keeps the process alive no more.
   */
  stop(): void {
    this.#timer?.cancel();
    this.#wakesAt = Infinity;
    this.#inBackground = true;
    // As many as there are, and not those that these set.
    for (let left = this.size; left > 0 && this.size > 0; left--) {
      const alarm = this.#queue.first()!;
      this.#queue.remove(alarm);
      alarm.ring();
    }
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#wakesAt = at;
    this.#timer = this.clock.setTimer(() => this.#ring(), at - this.clock.now(), { background: this.#inBackground });
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
