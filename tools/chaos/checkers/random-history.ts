import type { Entry } from '../history/entries.js';
import { type Story, story } from './story.js';

/** A number from 0 up to a bound, by a seed (mulberry32). */
export type Dice = (bound: number) => number;

export function dice(seed: number): Dice {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

const PROCESSES = ['p1', 'p2', 'p3', 'p4', 'p5'];
const LEASE_MS = 300;

interface Waiter {
  readonly process: string;
  readonly mode: 'exclusive' | 'reentrant' | 'read' | 'write' | 'semaphore';
  readonly permits: number;
  readonly asked: number;
}

interface Holder extends Waiter {
  readonly as: string;
  readonly from: number;
  readonly token: number;
}

/**
 * The log of processes that use a correct lock: one resource of each kind, each with its queue. New calls join the end;
 * each release lets in the first waiter and those behind it that can share with it.
 */
export function randomHistory(seed: number, steps: number): Entry[] {
  const roll = dice(seed);
  const told = story();
  let tick = 1000;
  const nextToken = (): number => ++tick * 64;
  for (const resource of ['stock', 'prices', 'slots']) new Resource(told, resource, roll, nextToken).live(steps);
  const end = told.entries.reduce((latest, { at }) => Math.max(latest, at), 0);
  for (const process of PROCESSES) told.closes(process, end + 1, end + 2);
  return told.add({ type: 'leftovers', process: 'chaos', at: end + 3, keys: ['lock:fence'], clients: [], channels: [] })
    .entries;
}

class Resource {
  #now = 0;
  #calls = 0;
  #holders: Holder[] = [];
  #queue: Waiter[] = [];

  constructor(
    private readonly told: Story,
    private readonly name: string,
    private readonly roll: Dice,
    private readonly nextToken: () => number,
  ) {}

  live(steps: number): void {
    for (let step = 0; step < steps; step++) {
      this.#now += 1 + this.roll(5);
      const dice = this.roll(10);
      if (dice < 5) this.#ask();
      else if (dice < 8) this.#end();
      else this.#beSeen();
    }
    while (this.#holders.length > 0) {
      this.#now += 2;
      this.#end();
    }
  }

  #ask(): void {
    const idle = PROCESSES.filter(
      (name) => ![...this.#queue, ...this.#holders].some(({ process }) => process === name),
    );
    const process = idle[this.roll(idle.length)];
    if (!process) return;
    const isBusy = this.#holders.length > 0 && this.#queue.length > 0;
    if (isBusy && this.roll(3) === 0) {
      this.told.refused(process, this.name, {
        ...(this.name === 'slots' && { mode: 'semaphore', total: 3 }),
        asked: this.#now,
        at: this.#now + 0.5,
        queues: false,
        waitMs: 0,
        code: null,
      });
      return;
    }
    const dice = this.roll(4);
    const mode = {
      stock: dice === 0 ? 'reentrant' : 'exclusive',
      prices: dice === 0 ? 'write' : 'read',
      slots: 'semaphore',
    }[this.name] as Waiter['mode'];
    this.#queue.push({ process, mode, permits: mode === 'semaphore' ? 1 + this.roll(2) : 1, asked: this.#now });
    this.#grant();
  }

  #end(): void {
    const holder = this.#holders[this.roll(this.#holders.length)];
    if (!holder) return;
    this.#holders = this.#holders.filter((other) => other !== holder);
    const { process, as, token, from, mode, asked, permits } = holder;
    const to = this.#now;
    const said = { as, mode, asked, from, to, token, until: from + LEASE_MS, leaseMs: LEASE_MS };
    this.told
      .hold(process, this.name, {
        ...said,
        ...(mode === 'semaphore' && { permits, total: 3 }),
        ...(mode === 'write' && this.roll(3) === 0 && { downgradedAt: (from + to) / 2 }),
      })
      .look(process, as, { at: from + 0.1, held: true, until: from + LEASE_MS });
    if (mode === 'reentrant') {
      this.told.hold(process, this.name, {
        mode,
        inside: as,
        asked: from + 0.1,
        from: from + 0.2,
        to: from + 0.3,
        token,
      });
      this.told.look(process, as, { at: from + 0.5, held: true, until: from + LEASE_MS });
    }
    if (mode === 'exclusive') {
      this.told
        .wrote(process, as, { at: from + 0.3, token, resource: this.name })
        .witnessed(from + 0.2, token, true, this.name);
    }
    this.#now += 0.3;
    this.#grant();
  }

  #grant(): void {
    for (let next = this.#queue[0]; next && this.#admits(next); next = this.#queue[0]) {
      this.#queue.shift();
      const as = `${this.name}${++this.#calls}`;
      this.#holders.push({ ...next, as, from: this.#now + 0.1 + this.roll(50) / 100, token: this.nextToken() });
    }
  }

  #admits({ mode, permits }: Waiter): boolean {
    if (this.#holders.length === 0) return true;
    const used = this.#holders.reduce((sum, holder) => sum + holder.permits, 0);
    if (mode === 'semaphore') return used + permits <= 3;
    return mode === 'read' && this.#holders.every((holder) => holder.mode === 'read');
  }

  #beSeen(): void {
    const holders = Object.fromEntries(this.#holders.map(({ process, token }) => [process, token]));
    const waiters = this.#queue.map(({ process }) => process);
    this.told.queue(this.#now, holders, waiters, this.name);
  }
}
