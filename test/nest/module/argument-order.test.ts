import { jest } from '@jest/globals';
import { InvalidLockOptionsError, RedisLockService } from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

/** Calls that take options and work, with the two in the wrong order, as JavaScript may. */
const CALLS: [string, (locks: RedisLockService, work: () => void, options: object) => Promise<unknown>][] = [
  ['using', (locks, ...wrong: unknown[]) => call(locks, 'using', 'stock', ...wrong)],
  ['tryUsing', (locks, ...wrong: unknown[]) => call(locks, 'tryUsing', 'stock', ...wrong)],
  ['using', (locks, ...wrong: unknown[]) => call(locks.semaphore('stock', { permits: 3 }), 'using', ...wrong)],
  ['tryUsing', (locks, ...wrong: unknown[]) => call(locks.semaphore('stock', { permits: 3 }), 'tryUsing', ...wrong)],
];

function call(target: object, method: string, ...args: unknown[]): Promise<unknown> {
  return (target as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]!(...args);
}

describe('options after the work', () => {
  const start = useApps();

  it.each(CALLS)('%s refuses them before it locks anything', async (name, callWrong) => {
    const events: unknown[] = [];
    const observers = [(event: unknown) => events.push(event)];
    const { app } = await start({ imports: [inMemory({ observers })] });
    const work = jest.fn();
    const error = await rejection(callWrong(app.get(RedisLockService), work, { waitMs: 0 }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({
      option: 'work',
      message: `${name} takes the work last, after the options: ${name}(..., options, work).`,
    });
    expect(work).not.toHaveBeenCalled();
    expect(events).toEqual([]);
  });
});
