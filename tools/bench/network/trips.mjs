/**
 * Counts round trips by cause and effect, not by time. What a process or server sends comes half a round trip after all
 * that it has received before. So the count is that of the longest chain, and things that go on at once count once.
 */
export class Trips {
  #halves = new Map();
  #epoch = 0;

  /** Counts from here on. What is under way belongs to what was before, and is not counted. */
  begin() {
    this.#halves.clear();
    this.#epoch++;
  }

  /** Something leaves `from`. @returns {(to: string) => void} to be called when it arrives */
  leave(from) {
    const [halves, epoch] = [this.#of(from) + 1, this.#epoch];
    return (to) => {
      if (epoch === this.#epoch) this.#halves.set(to, Math.max(this.#of(to), halves));
    };
  }

  /** How many round trips were needed for what this process or server knows now: 0.5 is one way. */
  of(name) {
    return this.#of(name) / 2;
  }

  #of(name) {
    return this.#halves.get(name) ?? 0;
  }
}
