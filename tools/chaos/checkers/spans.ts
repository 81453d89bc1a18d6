export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Spans of time, merged: in order, and apart from each other. */
export class Spans {
  readonly list: readonly Span[];

  constructor(spans: Iterable<Span>) {
    const merged: { from: number; to: number }[] = [];
    for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
      const last = merged.at(-1);
      if (to < from) continue;
      if (last && from <= last.to) last.to = Math.max(last.to, to);
      else merged.push({ from, to });
    }
    this.list = merged;
  }

  /** The index of the first span that ends at this moment or later. */
  #indexFrom(at: number): number {
    let [low, high] = [0, this.list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.list[middle]!.to < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first one that ends at this moment or later. */
  firstFrom(at: number): Span | undefined {
    return this.list[this.#indexFrom(at)];
  }

  /** The spans that overlap this period. */
  within(from: number, to: number): Span[] {
    const found: Span[] = [];
    for (let index = this.#indexFrom(from); index < this.list.length; index++) {
      const span = this.list[index]!;
      if (span.from > to) break;
      found.push(span);
    }
    return found;
  }

  touches(from: number, to: number): boolean {
    const next = this.firstFrom(from);
    return next !== undefined && next.from <= to;
  }

  /** The part of this period that is covered. */
  coveredMs(from: number, to: number): number {
    let covered = 0;
    for (const span of this.within(from, to)) covered += Math.min(to, span.to) - Math.max(from, span.from);
    return covered;
  }

  /** The uncovered parts of this period. */
  gaps(from: number, to: number): Span[] {
    const gaps: Span[] = [];
    let at = from;
    for (const span of this.within(from, to)) {
      if (span.from > at) gaps.push({ from: at, to: span.from });
      at = Math.max(at, span.to);
    }
    if (at < to) gaps.push({ from: at, to });
    return gaps;
  }
}
