import { randomFillSync } from 'node:crypto';

/** Where core takes randomness from. Injected, so that tests are repeatable. */
export interface Random {
  /** An unguessable name: 128 bits from a cryptographic generator, base64url. */
  id(): string;
  /** A number from 0 up to, not including, 1; for jitter. */
  fraction(): number;
}

const ID_BYTES = 16;
const IDS_AT_ONCE = 256;

export class SystemRandom implements Random {
  readonly #pool = Buffer.alloc(ID_BYTES * IDS_AT_ONCE);
  #used = this.#pool.length;

  id(): string {
    // Asking the generator for each id costs a fifth of an acquisition.
    if (this.#used === this.#pool.length) {
      randomFillSync(this.#pool);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += ID_BYTES;
    return this.#pool.toString('base64url', from, this.#used);
  }

  fraction(): number {
    return Math.random();
  }
}
