import type { Clock, Timer } from './clock.js';
import { settle } from './promises.js';

/** A timer later than this means that the event loop was blocked, and answers may be waiting to be read. */
export const LATE_MS = 5;

/** An entry of a {@link DueQueue}. */
export interface Due {
  /** On the monotonic clock. */
  dueAt: number;
  /** Its index in the heap; -1 while it is in none. Maintained by the queue. */
  heapIndex: number;
}

/** A binary min-heap by due time. Entries know their index, so any of them can be moved or removed in O(log n). */
export class DueQueue<T extends Due> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  first(): T | undefined {
    return this.#heap[0];
  }

  /** In no order. */
  [Symbol.iterator](): IterableIterator<T> {
    return this.#heap.values();
  }

  /** Adds the entry, or moves it to the place of its new `dueAt`. */
  put(entry: T): void {
    if (entry.heapIndex === -1) {
      this.#heap.push(entry);
      return this.#rise(this.#heap.length - 1);
    }
    this.#rise(entry.heapIndex);
    this.#sink(entry.heapIndex);
  }

  /** Does nothing if the entry is not in this queue. */
  remove(entry: T): void {
    const index = entry.heapIndex;
    // First: to look for a property "-1" of an array takes longer than all the rest.
    if (index === -1 || this.#heap[index] !== entry) return;
    entry.heapIndex = -1;
    const last = this.#heap.pop()!;
    if (last === entry) return;
    this.#place(last, index);
    this.#rise(index);
    this.#sink(last.heapIndex);
  }

  #place(entry: T, index: number): void {
    this.#heap[index] = entry;
    entry.heapIndex = index;
  }

  #rise(index: number): void {
    const entry = this.#heap[index]!;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#heap[parentIndex]!;
      if (parent.dueAt <= entry.dueAt) break;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(entry, index);
  }

  #sink(index: number): void {
    const entry = this.#heap[index]!;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= this.#heap.length) break;
      const right = left + 1;
      const smaller = right < this.#heap.length && this.#heap[right]!.dueAt < this.#heap[left]!.dueAt ? right : left;
      const child = this.#heap[smaller]!;
      if (child.dueAt >= entry.dueAt) break;
      this.#place(child, index);
      index = smaller;
    }
    this.#place(entry, index);
  }
}

/** An action for a point in time. {@link Alarms} sets, moves and cancels it. */
export interface Alarm extends Due {
  ring(): void;
}

export function alarmThat(ring: () => void): Alarm {
  return { dueAt: 0, heapIndex: -1, ring };
}

/**
 * Any number of alarms on one timer. Setting and cancelling an alarm for each command costs a fraction of a timer. The
 * timer is left alone while it fires early enough.
 *
 * Alarms are for calls that wait, not for the ends of leases: after a blocked event loop, pending replies are read
 * before they ring. Otherwise a reply that came in time would count as none.
 */
export class Alarms {
  readonly #queue = new DueQueue<Alarm>();
  #timer: Timer | undefined;
  #wakesAt = Infinity;
  #inBackground = false;

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.#queue.size;
  }

  get isStopped(): boolean {
    return this.#inBackground;
  }

  /** Rings once at this time on the monotonic clock. An alarm that is set already is moved; `Infinity` cancels it. */
  set(alarm: Alarm, at: number): void {
    if (at === Infinity) return this.cancel(alarm);
    if (alarm.heapIndex !== -1 && alarm.dueAt === at) return;
    alarm.dueAt = at;
    this.#queue.put(alarm);
    if (at < this.#wakesAt) this.#arm(at);
  }

  setIn(alarm: Alarm, delayMs: number, now = this.clock.now()): void {
    this.set(alarm, now + delayMs);
  }

  cancel(alarm: Alarm): void {
    this.#queue.remove(alarm);
  }

  /**
   * Rings every alarm now, so that no caller waits for a time that may never come. Alarms set later ring in time, but
   * no longer keep the process alive.
   */
  stop(): void {
    this.#timer?.cancel();
    this.#wakesAt = Infinity;
    this.#inBackground = true;
    // Only the alarms that are set now, not the ones that they set.
    for (let left = this.size; left > 0 && this.size > 0; left--) {
      const alarm = this.#queue.first()!;
      this.#queue.remove(alarm);
      alarm.ring();
    }
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#wakesAt = at;
    this.#timer = this.clock.setTimer(() => this.#wake(), at - this.clock.now(), { background: this.#inBackground });
  }

  #wake(): void {
    const now = this.clock.now();
    const first = this.#queue.first();
    if (!first || now <= first.dueAt + LATE_MS) return this.#ring(now);
    // Timers run before pending replies are read, which happens in the next turn of the event loop. Until then no alarm
    // sets the timer again, because `#wakesAt` stays. If that turn blocks, too, alarms that fall due in it have to wait
    // for another turn.
    void settle().then(() => this.#ring(now));
  }

  #ring(dueBy: number): void {
    this.#wakesAt = Infinity;
    for (let alarm = this.#queue.first(); alarm && alarm.dueAt <= dueBy; alarm = this.#queue.first()) {
      this.#queue.remove(alarm);
      alarm.ring();
    }
    const next = this.#queue.first();
    if (next && next.dueAt < this.#wakesAt) this.#arm(next.dueAt);
  }
}
