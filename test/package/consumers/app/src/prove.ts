// Boots the application twice, as two instances of a fleet would be, and checks the promises of the package.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { NestFactory } from '@nestjs/core';
import { InvalidLockOptionsError, LockBusyError } from 'nestjs-redis-lock';
import { fence } from 'nestjs-redis-lock/fence';
import { jobsOfTheFleet, missTicks } from './jobs.js';
import { AppModule, Shop } from './shop.js';

const TICKS = 2;
const TICKS_MS = 60_000;

export async function prove(): Promise<void> {
  await entryWithoutNest();
  const warnings = new Set<string>();
  const logger = {
    log: () => {},
    error: console.error,
    warn: (message: string) => warnings.add(message),
    // Nest 10 calls it for the next application.
    setLogLevels: () => {},
  };
  const boot = () => NestFactory.createApplicationContext(AppModule, { logger });
  await missTicks(boot);
  const apps = await Promise.all([boot(), boot()]);
  const [here, there] = apps.map((app) => app.get(Shop)) as [Shop, Shop];
  try {
    await oneAtATime(here, there);
    await busyAcrossInstances(here, there);
    await oneRunPerTick();
    const told = [...warnings];
    assert.ok(
      told.some((line) => line.startsWith('A singleton job has no name: "Shop.tick". ')),
      told.join('\n'),
    );
    await jobsOfTheFleet(apps);
  } finally {
    await Promise.all(apps.map((app) => app.close()));
  }
}

/** The entry for fenced writes knows the errors of the main entry. Sends nothing. */
async function entryWithoutNest(): Promise<void> {
  await assert.rejects(fence.guard('redis://localhost' as never, { key: 'a', token: 1 }, []), InvalidLockOptionsError);
}

async function oneAtATime(here: Shop, there: Shop): Promise<void> {
  const paid = await Promise.all([here.pay('7'), there.pay('7'), here.pay('7'), there.pay('7')]);
  assert.deepEqual(paid, Array(4).fill('paid 7'));
  assert.equal(Shop.mostPayingAtOnce, 1);
}

async function busyAcrossInstances(here: Shop, there: Shop): Promise<void> {
  const lease = await here.reserve('lamp');
  assert.ok(lease.isHeld() && lease.fencingToken > 0);
  await assert.rejects(there.reserve('lamp'), LockBusyError);
  await lease.release();
  const next = await there.reserve('lamp');
  assert.ok(next.fencingToken > lease.fencingToken);
  await next.release();
}

async function oneRunPerTick(): Promise<void> {
  const deadline = Date.now() + TICKS_MS;
  while (Shop.ticks.length < TICKS && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(Shop.ticks.length >= TICKS, `the cron job ran ${Shop.ticks.length} times in ${TICKS_MS} ms`);
  assert.equal(new Set(Shop.ticks).size, Shop.ticks.length, `a tick ran twice: ${Shop.ticks.join(', ')}`);
}
