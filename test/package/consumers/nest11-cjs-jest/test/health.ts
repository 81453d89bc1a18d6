import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { RedisLockModule } from 'nestjs-redis-lock';
import { RedisLockHealth } from 'nestjs-redis-lock/health';

@Module({
  imports: [TerminusModule, RedisLockModule.forRoot({ connection: process.env.REDIS_URL! })],
  providers: [RedisLockHealth],
})
class AppModule {}

it('the health check works with Terminus 11', async () => {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
  const locks = app.get(RedisLockHealth);
  const { details } = await app.get(HealthCheckService).check([() => locks.isHealthy('locks', { timeoutMs: 5_000 })]);
  expect(details).toMatchObject({ locks: { status: 'up', degraded: false, topology: 'standalone' } });
  await app.close();
});
