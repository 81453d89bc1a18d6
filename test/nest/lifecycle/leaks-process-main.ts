import { ConsoleLogger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Lease, type LockEvent, RedisLockModule, RedisLockService } from '../../../lib/index.js';

/** Forgets leases in several ways, and prints which of them the library has noticed. Arguments: `warn` or `expire`. */
const onLeak = process.argv[2] as 'warn' | 'expire';
const events: LockEvent[] = [];
const warnings: string[] = [];

class Warnings extends ConsoleLogger {
  override warn(message: unknown): void {
    warnings.push(String(message));
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: 'memory:',
      leaseMs: 1_500,
      waitMs: 10_000,
      onLeak,
      observers: [(event) => void events.push(event)],
    }),
  ],
})
class App {}

const app = await NestFactory.createApplicationContext(App, { logger: new Warnings({ logLevels: ['warn'] }) });
const locks = app.get(RedisLockService);
const kept: { lease?: Lease; signal?: AbortSignal } = {};
const collect = (globalThis as unknown as { gc(): void }).gc;

/** An object that keeps its lease, and is forgotten with it: what remembers the call must not remember the object. */
class Importer {
  lease: Lease | undefined;

  async begin(): Promise<void> {
    this.lease = await locks.acquire('forgotten by an object');
  }
}

async function takeLocks(): Promise<void> {
  await locks.acquire('forgotten');
  await locks.acquire(['forgotten a', 'forgotten b']);
  await locks.semaphore('forgotten permit', { permits: 2 }).acquire();
  await new Importer().begin();
  kept.lease = await locks.acquire('kept');
  kept.signal = (await locks.acquire('its signal kept')).signal;
  (await locks.acquire('listened to')).signal.addEventListener('abort', () => {});
  await locks.acquire('fixed', { watchdog: false });
  await (await locks.acquire('released')).release();
  void locks.using('worked under', () => sleep(60_000, undefined, { ref: false }));
}

const leaked = () => events.filter((event) => event.type === 'leaked');
await takeLocks();
// Waits for the expected reports, and then as long again for unexpected ones.
const begin = performance.now();
let noticedMs = Infinity;
while (performance.now() - begin < Math.min(20_000, 2 * noticedMs)) {
  await sleep(50);
  collect();
  if (noticedMs === Infinity && leaked().length >= 5) noticedMs = performance.now() - begin;
}
// Longer than a lease: a renewed lock is still held, any other one is available.
const next = await locks.acquire('forgotten', { waitMs: 4_000 }).then(
  () => 'granted',
  (error: { code: string }) => error.code,
);
const lost = events.filter((event) => event.type === 'lost' && event.resource === 'forgotten');
const isKeptHeld = kept.lease!.isHeld() && !kept.signal!.aborted;
console.log(
  JSON.stringify({
    leaked: leaked(),
    warnings: warnings.filter((text) => !/^(Lost|The event loop was blocked)/.test(text)),
    next,
    lost,
    isKeptHeld,
  }),
);
process.exit(0);
