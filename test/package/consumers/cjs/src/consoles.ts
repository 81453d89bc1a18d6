// The console on both platforms, as a module of CommonJS, and, by the name consoles.mts, as one of ES. Prints where each of them is.
import 'reflect-metadata';
import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  Module,
  type OnApplicationBootstrap,
  UnauthorizedException,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';

interface Visited {
  readonly headers: Readonly<Record<string, string>>;
}

@Injectable()
class SignedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (context.switchToHttp().getRequest<Visited>().headers['x-user'] === undefined) throw new UnauthorizedException();
    return true;
  }
}

@Injectable()
class Orders implements OnApplicationBootstrap {
  constructor(private readonly locks: RedisLockService) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.locks.acquire('order:7');
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({ connection: 'memory:', shutdown: { drainMs: 0 } }),
    RedisLockConsoleModule.forRoot({
      path: 'ops/locks',
      guards: [SignedIn],
      actions: ['release'],
      who: ({ headers }: Visited) => headers['x-user'],
    }),
    // For people who may only look.
    RedisLockConsoleModule.forRoot({ path: 'view', guards: [SignedIn] }),
  ],
  providers: [Orders],
})
class ConsoleModule {}

async function start(platform: string): Promise<void> {
  const adapter = platform === 'express' ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(ConsoleModule, adapter, { logger: ['error', 'warn'] });
  app.setGlobalPrefix('v1');
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  console.log(`${platform}: ${await app.getUrl()}/v1/ops/locks`);
}

void start('express').then(() => start('fastify'));
