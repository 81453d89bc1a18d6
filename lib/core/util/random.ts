import { randomFillSync } from 'node:crypto';

/** The source of randomness for core. Injected, so that tests are repeatable. */
export interface Random {
  /** An unguessable name: 128 bits from a cryptographic generator, base64url. */
  id(): string;
  /** A number from 0 to less than 1, for jitter. */
  fraction(): number;
}

const ID_BYTES = 16;
const IDS_AT_ONCE = 256;

/** What ids are made of. Tests pass their own. */
export interface RandomSources {
  readonly fill: (pool: Uint8Array) => unknown;
  /** Both in milliseconds: `now` from any start, with fractions; `wallNow` since the Unix epoch. */
  readonly now: () => number;
  readonly wallNow: () => number;
}

const SYSTEM: RandomSources = { fill: randomFillSync, now: () => performance.now(), wallNow: () => Date.now() };

/** For how long a reading of the wall clock is reused, in milliseconds. */
const WALL_CLOCK_KEEPS_MS = 0.1;

export class SystemRandom implements Random {
  readonly #pool = Buffer.alloc(ID_BYTES * IDS_AT_ONCE);
  readonly #words = new Uint32Array(this.#pool.buffer, this.#pool.byteOffset, this.#pool.length / 4);
  readonly #times = new Float64Array(2);
  readonly #timeWords = new Uint32Array(this.#times.buffer);
  readonly #sources: RandomSources;
  #used = this.#pool.length;
  #wallReadAt = -Infinity;

  constructor(sources = SYSTEM) {
    this.#sources = sources;
  }

  id(): string {
    const { fill, now, wallNow } = this.#sources;
    // Asking the generator for each id costs a fifth of an acquisition.
    if (this.#used === this.#pool.length) {
      fill(this.#pool);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += ID_BYTES;
    // Copies of a running machine (snapshots, live clones) have the same pool and the same generator. The time at which
    // they continue differs, so it is mixed in. Random bits stay random with it.
    const time = now();
    if (!(time - this.#wallReadAt < WALL_CLOCK_KEEPS_MS)) {
      this.#wallReadAt = time;
      this.#times[1] = wallNow();
    }
    this.#times[0] = time;
    for (let word = 0; word < ID_BYTES / 4; word++) this.#words[from / 4 + word]! ^= this.#timeWords[word]!;
    return this.#pool.toString('base64url', from, this.#used);
  }

  fraction(): number {
    return Math.random();
  }
}

/** The shortest and the longest pause between two tries, in milliseconds. */
interface PauseRange {
  readonly first: number;
  readonly longest: number;
}

/**
 * How long to wait before the next try: twice as long after each failure in a row.
 *
 * @param failures 1 after the first failure
 * @returns milliseconds within the range
 */
export function backoff({ first, longest }: PauseRange, failures: number): number {
  return Math.min(longest, first * 2 ** Math.min(failures - 1, 10));
}

/**
 * Spreads out many callers that wait for the same thing.
 *
 * @returns a factor from 1 up to 1.25
 */
export function jitter(random: Pick<Random, 'fraction'>): number {
  return 1 + random.fraction() / 4;
}
