import { BullModule, getQueueToken } from '@nestjs/bullmq';
import type { DynamicModule, INestApplication } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { RedisLockModule } from 'nestjs-redis-lock';

export const LEASE_MS = 6_000;

/** A worker that soon takes the jobs of another worker that has died. */
export const STALLING = { lockDuration: 2_000, stalledInterval: 200 };

export function connectionTo(url: string): { connection: { host: string; port: number; maxRetriesPerRequest: null } } {
  const { hostname, port } = new URL(url);
  return { connection: { host: hostname, port: Number(port), maxRetriesPerRequest: null } };
}

/** The modules of an application with these queues. */
export function withQueues(url: string, ...names: string[]): DynamicModule[] {
  return [
    RedisLockModule.forRoot({ connection: url, leaseMs: LEASE_MS }),
    BullModule.forRoot(connectionTo(url)),
    BullModule.registerQueue(...names.map((name) => ({ name }))),
  ];
}

export function queueOf(app: INestApplication, name: string): Queue {
  return app.get<Queue>(getQueueToken(name));
}
