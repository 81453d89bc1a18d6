import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';

/** A database with transactions: others see what was written from the commit on. */
class Database {
  #seats = 2;

  reset(): void {
    this.#seats = 2;
  }

  async select(): Promise<number> {
    return this.#seats;
  }

  async commit(seats: number): Promise<void> {
    this.#seats = seats;
  }

  get free(): number {
    return this.#seats;
  }
}

class Transaction {
  written: number | undefined;

  constructor(readonly database: Database) {}

  static async run<T>(database: Database, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const transaction = new Transaction(database);
    const result = await work(transaction);
    if (transaction.written !== undefined) await database.commit(transaction.written);
    return result;
  }
}

interface Theatre {
  book(): Promise<void>;
}

@Injectable()
class TheatreReleasesBeforeCommit implements Theatre {
  constructor(
    private readonly locks: RedisLockService,
    private readonly database: Database,
  ) {}

  async book(): Promise<void> {
    await Transaction.run(this.database, (transaction) =>
      this.locks.using('seats', async () => {
        transaction.written = (await transaction.database.select()) - 1;
      }),
    );
  }
}

@Injectable()
class MendedTheatre implements Theatre {
  constructor(
    private readonly locks: RedisLockService,
    private readonly database: Database,
  ) {}

  async book(): Promise<void> {
    await this.locks.using('seats', () =>
      Transaction.run(this.database, async (transaction) => {
        transaction.written = (await transaction.database.select()) - 1;
      }),
    );
  }
}

export const committedAfterRelease = raceCase<Theatre, Database>({
  bug: 'A transaction committed after the release',
  broken: TheatreReleasesBeforeCommit,
  mended: MendedTheatre,
  repository: Database,
  reads: ['select'],
  actors: { A: ({ service }) => service.book(), B: ({ service }) => service.book() },
  invariant: ({ repository }) => (repository.free === 0 ? undefined : 'one seat, two guests'),
  story: /A Database.select\(\) -> 2; .*B Database.select\(\) -> 2; .*: one seat, two guests$/,
});
