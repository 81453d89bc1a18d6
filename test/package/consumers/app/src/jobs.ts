// Jobs with a memory: with the version of @nestjs/schedule that the consumer has.
import assert from 'node:assert/strict';
import type { INestApplicationContext } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import { SingletonJobs } from 'nestjs-redis-lock/schedule';
import { Shop } from './shop.js';

const MISSED = 3;
/** A busy machine may need most of it. */
const SOON_MS = 60_000;
const YEARLY = '0 0 0 1 1 *';

/** As if the whole fleet had been down for some hours. */
export async function missTicks(boot: () => Promise<INestApplicationContext>): Promise<void> {
  const app = await boot();
  const redis = new Redis(process.env.REDIS_URL!);
  const last = 'lock:{cron:hourly}:last-tick';
  await until('the job is registered', async () => (await redis.exists(last)) === 1);
  // First, because it would make up for the ticks itself.
  await app.close();
  await redis.set(last, Date.now() - MISSED * 3_600_000, 'KEEPTTL');
  redis.disconnect();
}

export async function jobsOfTheFleet(apps: readonly INestApplicationContext[]): Promise<void> {
  const [here, there] = apps.map((app) => app.get(SingletonJobs)) as [SingletonJobs, SingletonJobs];
  await until('the missed ticks are made up for', async () => Shop.missed.length > 0);
  assert.deepEqual(Shop.missed, [MISSED]);
  assert.equal((await here.get('hourly')).missed, MISSED);

  const ran: string[] = [];
  for (const jobs of [here, there]) {
    jobs.add({ name: 'yearly', cron: YEARLY, timeZone: 'UTC' }, async ({ manual }) => (manual ? 'by hand' : 'by cron'));
    jobs.add({ name: 'once', at: new Date(Date.now() + 3_000) }, ({ tick }) => void ran.push(tick));
  }
  await until('the date is over', async () => ran.length > 0);
  assert.equal(await here.runNow('yearly', { by: 'ann' }), 'by hand');
  assert.equal((await there.history('yearly'))[0]?.by, 'ann');
  await here.pause('Shop.tick', { by: 'ann' });
  assert.equal((await there.get('Shop.tick')).pause?.by, 'ann');
  await there.resume('Shop.tick');
  here.reschedule('yearly', '0 0 0 2 1 *');
  const { cronTime } = apps[0]!.get(SchedulerRegistry).getCronJob('yearly');
  assert.equal(cronTime.source, '0 0 0 2 1 *');
  here.remove('yearly');
  await assert.rejects(here.runNow('yearli'), /no job called "yearli"/);
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + SOON_MS;
  while (!(await isSo())) {
    assert.ok(Date.now() < deadline, `not within ${SOON_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
