// The entry for Terminus. Terminus 12 is ESM only.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { RedisLockModule } from 'nestjs-redis-lock';
import { RedisLockHealth } from 'nestjs-redis-lock/health';

@Module({ imports: [TerminusModule, RedisLockModule.forRoot({ connection: 'memory:' })], providers: [RedisLockHealth] })
class HealthModule {}

export async function proveHealth(): Promise<void> {
  const app = await NestFactory.createApplicationContext(HealthModule, { logger: ['error', 'warn'] });
  const { locks } = await app.get(RedisLockHealth).isHealthy('locks');
  assert.equal(locks.status, 'up');
  assert.equal(locks.topology, 'memory');
  await app.close();
}
