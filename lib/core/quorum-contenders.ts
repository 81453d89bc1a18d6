import type { Ownership } from './lock-store.js';
import { QuorumContender, type QuorumWorkings } from './quorum-contender.js';

/** So many are looked at for each that comes: more than come, so that none is forgotten forever. */
const SWEPT_AT_ONCE = 2;

/** What is known of the owners that contend, or hold. Nobody is kept for longer than what it may have at the nodes. */
export class QuorumContenders {
  readonly #contenders = new Map<string, QuorumContender>();

  constructor(private readonly workings: QuorumWorkings) {}

  get size(): number {
    return this.#contenders.size;
  }

  get(owner: string): QuorumContender | undefined {
    return this.#contenders.get(owner);
  }

  open(ownership: Ownership): QuorumContender {
    let contender = this.#contenders.get(ownership.owner);
    if (contender === undefined || contender.isOver) {
      this.#sweep();
      contender = new QuorumContender(ownership, this.workings);
      this.#contenders.set(ownership.owner, contender);
    }
    return contender;
  }

  delete(owner: string): void {
    this.#contenders.delete(owner);
  }

  #sweep(): void {
    const now = this.workings.clock.now();
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept++) {
      const [oldest] = this.#contenders;
      if (oldest === undefined) return;
      const [owner, contender] = oldest;
      this.#contenders.delete(owner);
      if (now <= contender.touchedAt + contender.leaseMs) this.#contenders.set(owner, contender);
      else contender.end();
    }
  }
}
