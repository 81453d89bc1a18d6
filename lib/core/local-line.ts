/** One place in a line. */
export interface Place {
  readonly isFirst: boolean;
  /** Calls back when this place becomes the first; gives the function that stops listening. */
  onFirst(callback: () => void): () => void;
  /** Gives the place up; the next one in line becomes the first. Says whether anybody is still in line. */
  leave(): boolean;
}

/**
 * The waiters of this process, first come first served per resource. Only the first in line talks to Redis, so a thousand
 * local waiters cost Redis no more than one.
 */
export class LocalLines {
  readonly #lines = new Map<string, Set<LinePlace>>();

  join(resource: string): Place {
    let line = this.#lines.get(resource);
    if (line === undefined) this.#lines.set(resource, (line = new Set()));
    const place = new LinePlace(line, () => this.#lines.delete(resource));
    line.add(place);
    return place;
  }

  /** How many resources somebody waits for. */
  get size(): number {
    return this.#lines.size;
  }
}

class LinePlace implements Place {
  #callback: (() => void) | undefined;

  constructor(
    readonly line: Set<LinePlace>,
    readonly close: () => void,
  ) {}

  get isFirst(): boolean {
    return this.line.values().next().value === this;
  }

  onFirst(callback: () => void): () => void {
    this.#callback = callback;
    return () => (this.#callback = undefined);
  }

  leave(): boolean {
    const wasFirst = this.isFirst;
    this.line.delete(this);
    const next = this.line.values().next().value;
    if (next === undefined) {
      this.close();
      return false;
    }
    if (wasFirst) next.#callback?.();
    return true;
  }
}
