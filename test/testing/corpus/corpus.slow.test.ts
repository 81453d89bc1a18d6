import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { RedisLockModule } from 'nestjs-redis-lock';
import { exploreRaces, type ExploreRacesResult, raced, type RaceKit } from '../../../lib/races.js';
import * as crash from './crash.js';
import * as jobs from './jobs.js';
import * as leader from './leader.js';
import * as lockOrder from './lock-order.js';
import * as lostLease from './lost-lease.js';
import * as noLock from './no-lock.js';
import * as notReleased from './not-released.js';
import type { AnyRaceCase } from './race-case.js';
import * as releasedEarly from './released-early.js';
import * as transaction from './transaction.js';
import * as wrongKey from './wrong-key.js';
import * as wrongMode from './wrong-mode.js';

const CASES: AnyRaceCase[] = [
  noLock,
  wrongKey,
  releasedEarly,
  transaction,
  wrongMode,
  lockOrder,
  lostLease,
  notReleased,
  crash,
  jobs,
  leader,
].flatMap((family) => Object.values(family));

const apps: TestingModule[] = [];
const OTHER = 'the service of another process';

async function explore(race: AnyRaceCase, service: AnyRaceCase['broken']): Promise<ExploreRacesResult> {
  const repository = new race.repository();
  const row = (_: string, [id]: readonly unknown[]): string => String(id);
  const useValue = raced(repository, { reads: race.reads as never[], ...(race.byRow && { object: row }) });
  const app = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ connection: 'memory:' })],
    providers: [service, { provide: OTHER, useClass: service }, { provide: race.repository, useValue }],
  }).compile();
  apps.push(app);
  const world = { service: app.get(service), other: app.get<object>(OTHER), repository };
  const setup = (kit: RaceKit): typeof world => {
    kit.use(app);
    repository.reset();
    return world;
  };
  const { invariant } = race;
  return exploreRaces(setup, race.actors, { shares: 'named', ...race.options, invariant, throws: false });
}

afterAll(async () => {
  for (const app of apps) await app.close();
});

/** From the README: by bug, the schedules until it is found, and all schedules of the fixed service. */
function documented(): Record<string, Counts> {
  const page = readFileSync(new URL('README.md', import.meta.url), 'utf8');
  const rows = page.matchAll(/^\| (.+?) +\| +([\d,]+) +\| +([\d,]+) +\| +[\d,]+ ms +\|$/gm);
  const count = (text: string | undefined): number => Number(text?.replace(/,/g, ''));
  return Object.fromEntries([...rows].map(([, bug, found, all]) => [bug, { found: count(found), all: count(all) }]));
}

interface Counts {
  found: number;
  /** Not set if some schedules were left out. */
  all?: number;
}

const counts: Record<string, Counts> = {};

describe.each(CASES.map((each) => [each.bug, each] as const))('%s', (bug, race) => {
  it('is found, and told in a short story', async () => {
    const { failure, schedules } = await explore(race, race.broken);

    expect(failure?.story).toMatch(race.story);
    expect(failure?.steps.filter(({ isSilent }) => !isSilent).length).toBeLessThanOrEqual(14);
    counts[bug] = { found: schedules };
  });

  it('is not found in the mended service', async () => {
    const { failure, schedules, exhausted } = await explore(race, race.mended);

    expect(failure?.story).toBeUndefined();
    expect(exhausted).toBe(true);
    counts[bug]!.all = schedules;
  });
});

it('the corpus takes as many schedules as the README lists', () => {
  expect(counts).toEqual(documented());
});
