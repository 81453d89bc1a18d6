import type { AttemptLog } from './attempt-log.js';

/** One place in a line. */
export interface Place {
  /** What the last one in this line who asked the store found out; nothing if nobody has asked yet. */
  latest: AttemptLog | undefined;
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
  readonly #lines = new Map<string, Line>();

  join(resource: string): Place {
    let line = this.#lines.get(resource);
    if (line === undefined) this.#lines.set(resource, (line = new Line(() => this.#lines.delete(resource))));
    const place = new LinePlace(line);
    line.places.add(place);
    return place;
  }

  /** How many resources somebody waits for. */
  get size(): number {
    return this.#lines.size;
  }
}

class Line {
  readonly places = new Set<LinePlace>();
  latest: AttemptLog | undefined;

  constructor(readonly close: () => void) {}

  get first(): LinePlace | undefined {
    return this.places.values().next().value;
  }
}

class LinePlace implements Place {
  #callback: (() => void) | undefined;

  constructor(readonly line: Line) {}

  get latest(): AttemptLog | undefined {
    return this.line.latest;
  }

  set latest(log: AttemptLog | undefined) {
    this.line.latest = log;
  }

  get isFirst(): boolean {
    return this.line.first === this;
  }

  onFirst(callback: () => void): () => void {
    this.#callback = callback;
    return () => (this.#callback = undefined);
  }

  leave(): boolean {
    const wasFirst = this.isFirst;
    this.line.places.delete(this);
    const next = this.line.first;
    if (next === undefined) {
      this.line.close();
      return false;
    }
    if (wasFirst) next.#callback?.();
    return true;
  }
}
