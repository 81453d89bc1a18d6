// The program that count-leaks.ts starts, with --expose-gc: two applications of the published package, in one process.
import 'reflect-metadata';
import { setMaxListeners } from 'node:events';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { heapUsed, LEADERSHIP, takeCensus, watchClients } from './census.js';
import { CYCLES, type Fleet, Jobs } from './cycles.js';
import type { Leak, LeakReport } from './count-leaks.js';

const [url, cycles, ...leaks] = process.argv.slice(2) as [string, string, ...Leak[]];

/** For the heap to reach its size, and for everything to be compiled. */
const WARM_UP = leaks.length > 0 ? 200 : Math.max(1_500, Number(cycles) * 0.75);
/** Time for pending work to end: claims live for a second. */
const QUIET_WITHIN_MS = leaks.length > 0 ? 3_000 : 15_000;
/** The number of concurrent rounds. */
const LANES = 12;

const clients = watchClients();
const admin = new Redis(url);

async function startApp() {
  @Module({
    imports: [
      RedisLockModule.forRoot({
        connection: url,
        leaseMs: 10_000,
        attemptTimeoutMs: 10_000,
        shutdown: { drainMs: 0 },
      }),
    ],
    providers: [Jobs],
  })
  class AppModule {}
  return NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
}

const apps = [await startApp(), await startApp()];
const [a, b] = apps.map((app) => app.get(RedisLockService)) as [RedisLockService, RedisLockService];
const fleet: Fleet = { a, b, jobs: apps[0]!.get(Jobs), signal: new AbortController().signal };
// Like any signal that many listen to.
setMaxListeners(0, fleet.signal);
const watched = { clients, signal: fleet.signal, admin };
await Promise.race([a, b].map((locks) => locks.leadership(LEADERSHIP)!.whenElected()));
let leases = 0;
for (const locks of [a, b]) locks.observe(({ type }) => void (type === 'acquired' && leases++));
const turns = CYCLES.flatMap((cycle) => Array.from({ length: cycle.weight }, () => cycle));
const modes: Record<string, number> = {};
const kept: unknown[] = [];
let named = 0;
let isLeaking = false;

/** The deliberate leaks, by which the test sees that it would find one. */
const LEAKS: Record<Leak, (name: string) => unknown> = {
  'signal listener': () => fleet.signal.addEventListener('abort', () => undefined),
  'client listener': () => [...clients][0]!.on('error', () => undefined),
  'process listener': () => process.on('warning', () => undefined),
  key: (name) => admin.set(`lock:{${name}}`, '1'),
  // The first is ours, the next two are the connections of one application.
  subscription: (name) => [...clients][2]!.subscribe(`lock:inbox:${name}`),
  memory: (name) => kept.push(name.repeat(1_000).split('')),
  timer: () => setTimeout(() => undefined, 60_000),
  connection: (name) => name.endsWith('00') && new Redis(url).ping(),
};

async function run(target: number): Promise<void> {
  const until = leases + target;
  const lane = async (): Promise<void> => {
    while (leases < until) {
      const { mode, run: cycle } = turns[named % turns.length]!;
      const name = `resource:${named++}`;
      await cycle(fleet, name);
      if (isLeaking) for (const leak of leaks) await LEAKS[leak](name);
      modes[mode] = (modes[mode] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

await run(WARM_UP);
const before = await takeCensus(watched, QUIET_WITHIN_MS);
const heapBefore = await heapUsed();
const counted = leases;
isLeaking = true;
await run(Number(cycles));
const after = await takeCensus(watched, QUIET_WITHIN_MS, before);
const heapAfter = await heapUsed();
const report: LeakReport = { cycles: leases - counted, modes, before, after, heapBefore, heapAfter };

await Promise.all(apps.map((app) => app.close()));
admin.disconnect();
console.log(JSON.stringify(report));
