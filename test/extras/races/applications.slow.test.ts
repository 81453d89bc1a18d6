import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DistributedLock } from '../../../lib/index.js';
import { SingletonCron } from '../../../lib/schedule.js';
import { exploreRaces, raced, type RaceKit, racePoint } from '../../../lib/races.js';
import { RedisLockTestingModule } from '../../../lib/testing.js';

@Injectable()
class Repository {
  left = 1;

  async read(): Promise<number> {
    return this.left;
  }

  async write(left: number): Promise<void> {
    this.left = left;
  }
}

@Injectable()
class Shop {
  sold = 0;

  constructor(private readonly repository: Repository) {}

  @DistributedLock((order: string) => `order:${order}`)
  async pay(_order: string): Promise<void> {
    await this.carelessly();
  }

  @SingletonCron('0 0 1 1 *', { name: 'restock' })
  async restock(): Promise<void> {
    await this.repository.write((await this.repository.read()) + 1);
  }

  async carelessly(): Promise<void> {
    const left = await this.repository.read();
    if (left === 0) return;
    await this.repository.write(left - 1);
    this.sold++;
  }
}

describe('exploreRaces with an application that was started once', () => {
  const repository = new Repository();
  let app: Awaited<ReturnType<ReturnType<typeof Test.createTestingModule>['compile']>>;

  beforeEach(async () => {
    app = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot({ clock: 'manual', leaseMs: 5_000 })],
      providers: [Shop, { provide: Repository, useValue: raced(repository, { reads: ['read'] }) }],
    }).compile();
    await app.init();
  });

  afterEach(() => app.close());

  function setup(kit: RaceKit): Shop {
    kit.use(app);
    repository.left = 1;
    const shop = app.get(Shop);
    shop.sold = 0;
    return shop;
  }

  const invariant = ({ sold }: Shop): boolean => sold === 1;

  it('finds no race if a decorated method locks', async () => {
    const pay = (shop: Shop): Promise<void> => shop.pay('7');
    const result = await exploreRaces(setup, [pay, pay], { invariant });

    expect(result.exhausted).toBe(true);
  });

  it('claims the ticks of its jobs in the schedule, and not in the application', async () => {
    const restock = (shop: Shop): Promise<void> => shop.restock();
    const once = (): boolean => repository.left === 2;
    expect((await exploreRaces(setup, [restock, restock], { invariant: once })).exhausted).toBe(true);

    const never = (): boolean => repository.left === 1;
    await expect(exploreRaces(setup, [restock, restock], { invariant: never })).rejects.toThrow('claims the tick of');
  });

  it('says which lock service an application lacks', async () => {
    const other = (kit: RaceKit): void => void kit.use(app, 'billing');

    await expect(exploreRaces(other, [() => racePoint('pays')], { invariant: () => {} })).rejects.toMatchObject({
      code: 'SETUP_FAILED',
      message: expect.stringContaining('no lock service called "billing"'),
    });
  });
});
