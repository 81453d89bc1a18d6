import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { StaleFencingTokenError } from 'nestjs-redis-lock/fence';
import { raceCase } from './race-case.js';

/** A row that remembers the largest token it has seen. */
class Bids {
  #highest = 0;
  #best = 0;
  #newest = 0;

  reset(): void {
    this.#highest = 0;
    this.#best = 0;
    this.#newest = 0;
  }

  async highest(token?: number): Promise<number> {
    this.#fence(token);
    return this.#highest;
  }

  async raise(bid: number, token?: number): Promise<void> {
    this.#fence(token);
    this.#highest = bid;
    this.#best = Math.max(this.#best, bid);
  }

  #fence(token = this.#newest): void {
    if (token < this.#newest) throw new StaleFencingTokenError('bids', token, this.#newest);
    this.#newest = token;
  }

  /** A lower bid has replaced the best one. The caller of the lower one may have learned of its lost lease too late. */
  get isBestLost(): boolean {
    return this.#highest < this.#best;
  }
}

interface Auction {
  bid(amount: number): Promise<boolean>;
}

@Injectable()
class AuctionSendsNoToken implements Auction {
  constructor(
    private readonly locks: RedisLockService,
    private readonly bids: Bids,
  ) {}

  bid(amount: number): Promise<boolean> {
    return this.locks.using('auction', async () => {
      if ((await this.bids.highest()) >= amount) return false;
      await this.bids.raise(amount);
      return true;
    });
  }
}

@Injectable()
class MendedAuction implements Auction {
  constructor(
    private readonly locks: RedisLockService,
    private readonly bids: Bids,
  ) {}

  bid(amount: number): Promise<boolean> {
    return this.locks.using('auction', async ({ fencingToken }) => {
      if ((await this.bids.highest(fencingToken)) >= amount) return false;
      await this.bids.raise(amount, fencingToken);
      return true;
    });
  }
}

export const noToken = raceCase<Auction, Bids>({
  bug: 'A fencing token that is not sent',
  broken: AuctionSendsNoToken,
  mended: MendedAuction,
  repository: Bids,
  reads: [],
  actors: { A: ({ service }) => service.bid(10), B: ({ service }) => service.bid(20) },
  invariant: ({ repository }) => (repository.isBestLost ? 'the highest bid is lost' : undefined),
  story: /A Bids.highest\(\) -> 0; A is blocked.*B Bids.raise\(20\); .*A Bids.raise\(10\).*: the highest bid is lost$/,
  options: { faults: ['stall'] },
});
