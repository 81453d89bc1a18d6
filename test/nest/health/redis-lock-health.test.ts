import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import type { AddressInfo } from 'node:net';
import { RedisLockModule, RedisLockService, getRedisLockToken } from 'nestjs-redis-lock';
import { RedisLockHealth, type RedisLockHealthOptions } from 'nestjs-redis-lock/health';

@Controller()
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: RedisLockHealth,
  ) {}

  @Get('ready')
  @HealthCheck()
  ready() {
    return this.health.check([
      () => this.locks.isHealthy('locks', { timeoutMs: 500 }),
      () => this.locks.isHealthy('bills', { service: 'billing' }),
    ]);
  }
}

@Module({
  imports: [
    TerminusModule.forRoot({ logger: false }),
    RedisLockModule.forRoot({ connection: 'memory:' }),
    RedisLockModule.forRoot({ connection: 'memory:', service: 'billing' }),
  ],
  controllers: [HealthController],
  providers: [RedisLockHealth],
})
class AppModule {}

describe('RedisLockHealth in an application with @nestjs/terminus', () => {
  const start = async () => {
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    const { port } = app.getHttpServer().address() as AddressInfo;
    const ask = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/ready`);
      return { status: response.status, body: (await response.json()) as { details: Record<string, object> } };
    };
    return { app, ask, locks: app.get(RedisLockService), [Symbol.asyncDispose]: () => app.close() };
  };

  it('is up for each registration, with the data of each', async () => {
    await using world = await start();
    const lease = await world.locks.acquire('stock');
    const { status, body } = await world.ask();
    expect(status).toBe(200);
    expect(body.details).toMatchObject({
      locks: { status: 'up', degraded: false, topology: 'memory', held: 1, problems: [] },
      bills: { status: 'up', degraded: false, held: 0 },
    });
    await lease.release();
  });

  it('answers 503 if one of them is down, and names it', async () => {
    await using world = await start();
    await world.app.get<RedisLockService>(getRedisLockToken('billing')).beforeApplicationShutdown();
    const { status, body } = await world.ask();
    expect(status).toBe(503);
    expect(body.details).toMatchObject({
      locks: { status: 'up' },
      bills: { status: 'down', problems: [{ code: 'CLOSED' }] },
    });
  });

  it('is up with a note if the locks are degraded', async () => {
    await using world = await start();
    const well = await world.locks.health();
    const problem = { code: 'ECONNREFUSED', message: 'Away.', server: 2 };
    world.locks.health = async () => ({ ...well, status: 'degraded', problems: [problem] });
    const { status, body } = await world.ask();
    expect(status).toBe(200);
    expect(body.details['locks']).toMatchObject({ status: 'up', degraded: true, problems: [problem] });
  });

  it.each([
    [{ service: 'bills' }, /no RedisLockModule is registered with service: "bills"\..*in the option service/],
    [{ name: '' }, /name/],
    [{ timeoutMs: 0 }, /timeoutMs/],
    [{ timeout: 5 }, /timeout.*timeoutMs/],
  ])('refuses %j, whatever the locks are', async (options, message) => {
    await using world = await start();
    const checked = world.app.get(RedisLockHealth).isHealthy('locks', options as RedisLockHealthOptions);
    await expect(checked).rejects.toMatchObject({
      code: 'INVALID_LOCK_OPTIONS',
      message: expect.stringMatching(message),
    });
  });

  it.each([[undefined], [''], [{ timeoutMs: 500 }]])('refuses %j as the key', async (key) => {
    await using world = await start();
    const checked = world.app.get(RedisLockHealth).isHealthy(key as string);
    await expect(checked).rejects.toMatchObject({
      code: 'INVALID_LOCK_OPTIONS',
      message: expect.stringMatching(/^key of isHealthy\(\) must be a name/),
    });
  });
});
