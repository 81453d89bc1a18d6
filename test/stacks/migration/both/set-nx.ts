import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { OldLocks } from './orders.js';

const DELETE_OWN = `
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  return redis.call('DEL', KEYS[1])
`;

@Injectable()
export class SetNxLocks extends OldLocks {
  private readonly redis = new Redis(process.env.REDIS_URL!);

  async using(name: string, work: () => Promise<void>) {
    const value = randomUUID();
    const giveUpAt = Date.now() + 10_000;
    // The lock isn't renewed, so it has to last longer than the work.
    while (!(await this.take(name, 5_000, value))) {
      if (Date.now() > giveUpAt) throw new Error(`lock:${name} is taken`);
      await setTimeout(20);
    }
    try {
      await work();
    } finally {
      await this.redis.eval(DELETE_OWN, 1, `lock:${name}`, value);
    }
  }

  async take(name: string, ms: number, value = 'new') {
    const key = `lock:${name}`;
    return (await this.redis.set(key, value, 'PX', ms, 'NX')) === 'OK';
  }
}
