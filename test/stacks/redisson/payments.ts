import { Injectable, Module } from '@nestjs/common';
import { DistributedLock, key, RedisLockModule } from 'nestjs-redis-lock';
import { redisson } from 'nestjs-redis-lock/migration';

const javaLock = redisson({ client: process.env.REDIS_URL! });

@Injectable()
export class Payments {
  @DistributedLock({
    key: (id: string) => key`order:${id}`,
    waitMs: 5_000,
    alsoLock: javaLock,
  })
  async pay(id: string, charge: (id: string) => Promise<void>) {
    await charge(id);
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({ connection: process.env.REDIS_URL! }),
  ],
  providers: [Payments],
})
export class AppModule {}
