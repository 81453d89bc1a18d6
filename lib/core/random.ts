import { randomBytes } from 'node:crypto';

/** Where core takes randomness from. Injected, so that tests are repeatable. */
export interface Random {
  /** An unguessable name: 128 bits from a cryptographic generator, base64url. */
  id(): string;
  /** A number from 0 up to, not including, 1; for jitter. */
  fraction(): number;
}

export class SystemRandom implements Random {
  id(): string {
    return randomBytes(16).toString('base64url');
  }

  fraction(): number {
    return Math.random();
  }
}
