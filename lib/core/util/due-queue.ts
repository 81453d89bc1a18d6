/** An entry of a {@link DueQueue}. */
export interface Due {
  /** When it is due, on the monotonic clock. */
  dueAt: number;
  /** Its place in the heap; -1 while it is in none. Kept by the queue. */
  heapIndex: number;
}

/**
 * A binary min-heap by due time whose entries know their place, so that any of them can be moved or removed in O(log
 * n).
 */
export class DueQueue<T extends Due> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  first(): T | undefined {
    return this.#heap[0];
  }

  /** Adds the entry, or moves it to where its `dueAt` belongs now. */
  put(entry: T): void {
    if (entry.heapIndex === -1) {
      entry.heapIndex = this.#heap.length;
      this.#heap.push(entry);
    }
    this.#rise(entry.heapIndex);
    this.#sink(entry.heapIndex);
  }

  /** Does nothing where the entry is not in this queue. */
  remove(entry: T): void {
    const index = entry.heapIndex;
    if (this.#heap[index] !== entry) return;
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
