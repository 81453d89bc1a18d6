// The output for an operator at night. The first argument selects the incident.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';

const instanceId = process.env.INSTANCE_ID;

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: process.env.REDIS_URL!,
      keyPrefix: process.env.KEY_PREFIX!,
      leaseMs: 4_000,
      ...(instanceId ? { instanceId } : {}),
    }),
  ],
})
class NightModule {}

const scenes: Record<string, (locks: RedisLockService) => Promise<unknown>> = {
  async holds(locks) {
    await locks.acquire('order:7', { leaseMs: 60_000 });
    console.log('holds');
    await new Promise(() => {});
  },
  async waits(locks) {
    locks.campaign('nightly');
    locks.campaign('mail');
    await locks.acquire('order:7', { waitMs: 6_000 }).catch((error: Error) => console.log(error.message));
  },
  async outage(locks) {
    const leases = await Promise.all(Array.from({ length: 20 }, (_, n) => locks.acquire(`job:${n}`)));
    console.log('holds');
    const lost = ({ signal }: (typeof leases)[number]) =>
      signal.aborted || new Promise((resolve) => signal.addEventListener('abort', resolve));
    await Promise.all(leases.map(lost));
    console.log('lost');
    await (await locks.acquire('next', { waitMs: 30_000 })).release();
  },
  async standsStill(locks) {
    const lease = await locks.acquire('order:8', { leaseMs: 1_000 });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    if (!lease.isHeld()) console.log((lease.signal.reason as Error).message);
  },
};

async function run(scene: string): Promise<void> {
  const app = await NestFactory.createApplicationContext(NightModule);
  await scenes[scene]!(app.get(RedisLockService));
  await app.close();
}

void run(process.argv[2]!);
