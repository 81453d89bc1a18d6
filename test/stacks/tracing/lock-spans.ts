// A lock that is renewed many times, and a request that waits for it: otel-main.ts prints their spans.
import { NestFactory } from '@nestjs/core';
import { trace } from '@opentelemetry/api';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';

/** Longer than this process stalls on a busy machine: it starts a second application while it holds the lock. */
const LEASE_MS = 1_000;
const HELD_MS = 2_200;

export async function holdOverRenewals(connection: string): Promise<void> {
  const module = RedisLockModule.forRoot({
    connection,
    leaseMs: LEASE_MS,
    telemetry: openTelemetry({ metrics: false }),
  });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const locks = app.get(RedisLockService);
  const tracer = trace.getTracer('stack');
  const request = <T>(name: string, work: () => Promise<T>): Promise<T> =>
    tracer.startActiveSpan(name, (span) => work().finally(() => span.end()));
  let began = (): void => {};
  const isHeld = new Promise<void>((resolve) => (began = resolve));
  const holder = request('holder', () =>
    locks.using('held:1', async (lease) => {
      began();
      await new Promise((resolve) => setTimeout(resolve, HELD_MS));
      lease.assertHeld(); // it was renewed twice at least: more than twice its length has passed
    }),
  );
  await isHeld;
  // Of another instance: it asks Redis again and again, to keep its place.
  const other = await NestFactory.createApplicationContext(module, { logger: false });
  await request('waiter', () => other.get(RedisLockService).using('held:1', async () => {}));
  await holder;
  await other.close();
  await app.close();
}
