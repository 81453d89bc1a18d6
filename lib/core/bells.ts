/** Rings when a resource may be free. Remembers a ring that comes while nobody is waiting for it yet. */
export class Bell {
  #rung = false;
  #callback: (() => void) | undefined;

  constructor(readonly close: () => void) {}

  /** Forgets earlier rings. Call it before asking Redis: a ring after that must not be missed. */
  reset(): void {
    this.#rung = false;
  }

  ring(): void {
    this.#rung = true;
    this.#callback?.();
  }

  /** Calls back at the next ring, or at once when it has rung since the last reset. */
  readonly listen = (callback: () => void): (() => void) => {
    if (this.#rung) queueMicrotask(callback);
    this.#callback = callback;
    return () => (this.#callback = undefined);
  };
}

/** The bells of all local waiters, by resource. */
export class Bells {
  readonly #bells = new Map<string, Set<Bell>>();

  open(resource: string): Bell {
    let bells = this.#bells.get(resource);
    if (bells === undefined) this.#bells.set(resource, (bells = new Set()));
    const group = bells;
    const bell = new Bell(() => {
      group.delete(bell);
      if (group.size === 0 && this.#bells.get(resource) === group) this.#bells.delete(resource);
    });
    group.add(bell);
    return bell;
  }

  /** Rings for one resource, or for all of them when it is not known what was missed. */
  ring(resource: string | undefined): void {
    const groups = resource === undefined ? this.#bells.values() : [this.#bells.get(resource) ?? []];
    for (const group of groups) for (const bell of group) bell.ring();
  }

  get size(): number {
    return this.#bells.size;
  }
}
