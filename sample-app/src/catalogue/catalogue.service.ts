import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { type Lease, ReadLock, RedisLockService, WriteLock } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';
import { TimeClock } from '../time-clock/time-clock.js';

export interface Price {
  article: string;
  cents: number;
  edition: number;
}

/** An edition that is being printed. It is still there when its editor has died half way. */
type Draft = Omit<Price, 'article'>;

const ARTICLES = ['tea', 'coffee', 'jam', 'mug'];
const DRAFT = 'catalogue-draft';
const FENCE = 'catalogue-fence';
const LEASE_MS = 2_000;

/** The printed catalogue: one page an article, and all of them of one edition. Many read it, one edits it. */
@Injectable()
export class CatalogueService {
  constructor(
    private readonly locks: RedisLockService,
    private readonly database: Database,
    private readonly timeClock: TimeClock,
  ) {}

  async read(): Promise<Price[]> {
    for (;;) {
      const pages = await this.readWhole();
      if (pages) return pages;
      // A reader cannot become a writer. So this is a new lock, and another editor may have been faster.
      await this.finishDraft();
    }
  }

  /** The same without the lock, for the demo: it comes upon half an edition. */
  readWithoutLock(): Promise<Price[]> {
    return this.pages();
  }

  /**
   * Sets the price of everything. The fencing token is the edition: it grows from editor to editor.
   *
   * @returns the proof
   */
  @WriteLock({ key: 'catalogue', leaseMs: LEASE_MS })
  async edit(cents: number): Promise<Price[]> {
    const lease = this.locks.current('catalogue')!;
    const draft: Draft = { cents, edition: lease.fencingToken };
    await this.database.fenced(FENCE, lease.fencingToken, [['SET', DRAFT, JSON.stringify(draft)]]);
    await this.print(draft, lease);
    // The proof only has to be read: from here on others read beside it, and no one can edit before it is done.
    await lease.downgrade();
    return this.pages();
  }

  /**
   * Runs beside other readers, on any instance. An editor that was blocked, and has not noticed the end of its lease,
   * is refused from here on. Undefined if an editor has died, and left a draft.
   */
  @ReadLock({ key: 'catalogue', leaseMs: LEASE_MS })
  private async readWhole(): Promise<Price[] | undefined> {
    await this.database.refuseOlder(FENCE, this.locks.current('catalogue')!.fencingToken);
    if (await this.database.json<Draft>(DRAFT)) return undefined;
    return this.timeClock.during('catalogue', () => this.pages());
  }

  /** A lock undoes nothing: the next editor must finish what a dead one has begun, from its notes. */
  @WriteLock({ key: 'catalogue', leaseMs: LEASE_MS })
  private async finishDraft(): Promise<void> {
    const draft = await this.database.json<Draft>(DRAFT);
    if (draft) await this.print(draft, this.locks.current('catalogue')!);
  }

  /** Every step is fenced: an editor that was blocked cannot overwrite what others have read or edited in between. */
  private async print(draft: Draft, { fencingToken }: Lease): Promise<void> {
    for (const article of ARTICLES) {
      const price: Price = { article, ...draft };
      await this.database.fenced(FENCE, fencingToken, [['SET', page(article), JSON.stringify(price)]]);
      await sleep(settings.printMs);
    }
    await this.database.fenced(FENCE, fencingToken, [['DEL', DRAFT]]);
  }

  /** Page by page. */
  private async pages(): Promise<Price[]> {
    const prices: Price[] = [];
    for (const article of ARTICLES) {
      prices.push((await this.database.json<Price>(page(article))) ?? { article, cents: 0, edition: 0 });
      await sleep(settings.pageMs);
    }
    return prices;
  }
}

function page(article: string): string {
  return `catalogue:${article}`;
}
