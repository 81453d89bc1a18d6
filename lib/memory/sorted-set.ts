import type { Value } from './lua.js';

export class SortedSet {
  readonly #scores = new Map<string, number>();
  readonly #members: string[] = [];

  get size(): number {
    return this.#members.length;
  }

  scoreOf(member: string): number | undefined {
    return this.#scores.get(member);
  }

  /** @returns whether it is new */
  add(score: number, member: string): boolean {
    const before = this.#scores.get(member);
    if (before === score) return false;
    if (before !== undefined) this.delete(member);
    this.#members.splice(this.#rankOf(score, member), 0, member);
    this.#scores.set(member, score);
    return before === undefined;
  }

  delete(member: string): boolean {
    const score = this.#scores.get(member);
    if (score === undefined) return false;
    this.#members.splice(this.#rankOf(score, member), 1);
    this.#scores.delete(member);
    return true;
  }

  /**
   * Counts the members before a bound, such as 5 or (5.
   *
   * @param isLower whether the bound is the lower one of a range
   */
  rankBelow(bound: Value, isLower: boolean): number {
    if (bound === '-inf') return 0;
    const isOpen = typeof bound === 'string' && bound.startsWith('(');
    const score = Number(isOpen ? bound.slice(1) : bound);
    return this.#search((member) => {
      const own = this.#scores.get(member)!;
      return isOpen === isLower ? own <= score : own < score;
    });
  }

  /** ZRANGE, with BYSCORE, REV, LIMIT and WITHSCORES. */
  range(from: Value, to: Value, options: readonly Value[]): string[] {
    const isReverse = options.includes('REV');
    const members = options.includes('BYSCORE')
      ? this.#members.slice(this.rankBelow(from, true), this.rankBelow(to, false))
      : this.#byRank(Number(from), Number(to), isReverse);
    if (isReverse) members.reverse();
    const limit = options.indexOf('LIMIT');
    const limited = limit < 0 ? members : members.slice(options[limit + 1], options[limit + 1] + options[limit + 2]);
    if (!options.includes('WITHSCORES')) return limited;
    return limited.flatMap((member) => [member, String(this.#scores.get(member))]);
  }

  #byRank(from: number, to: number, isReverse: boolean): string[] {
    const { length } = this.#members;
    const [first, last] = [from < 0 ? Math.max(0, length + from) : from, to < 0 ? length + to : to];
    return isReverse
      ? this.#members.slice(Math.max(0, length - 1 - last), length - first)
      : this.#members.slice(first, last + 1);
  }

  #rankOf(score: number, member: string): number {
    return this.#search((other) => {
      const own = this.#scores.get(other)!;
      return own < score || (own === score && other < member);
    });
  }

  /** Counts the leading members that match. */
  #search(isBefore: (member: string) => boolean): number {
    let [low, high] = [0, this.#members.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#members[middle]!)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
