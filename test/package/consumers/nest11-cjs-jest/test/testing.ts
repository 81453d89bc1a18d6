import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';
import { bindLocks, passThroughLocks } from 'nestjs-redis-lock/testing';

@Injectable()
class Shop {
  @DistributedLock((orderId: string) => `order:${orderId}`)
  async pay(orderId: string): Promise<string> {
    return `paid ${orderId}`;
  }
}

it('a class can be tested without Nest, if @nestjs/testing is not installed', async () => {
  expect(() => require.resolve('@nestjs/testing')).toThrow();
  const shop = bindLocks(new Shop(), passThroughLocks());
  expect(await shop.pay('7')).toBe('paid 7');
});
