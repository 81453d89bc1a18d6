import { runUnbundled } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { ALONE, TOGETHER } from '../migration-guides/stories.js';
import type { Seen } from './main.js';

describe('on Nest 11', () => {
  const redis = useRedis();
  let seen: Seen;
  beforeAll(async () => {
    const { code, stdout, stderr } = await runUnbundled(new URL('main.ts', import.meta.url), [redis().url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    seen = JSON.parse(stdout) as Seen;
  });

  describe('from murlock', () => {
    it.each(['before', 'after'] as const)('%s: one payment of an order at a time, one parcel at a time', (version) => {
      const { payments, parcels } = seen.murlock[version];
      expect({ payments, parcels }).toEqual({ payments: ALONE, parcels: ALONE });
    });

    it('theirs ends with its release time, ours is renewed', () => {
      const { before, after } = seen.murlock;
      expect([before.longPayments, after.longPayments]).toEqual([TOGETHER, ALONE]);
    });

    it('theirs makes an error of work that took longer, ours returns what it did', () => {
      const { before, after } = seen.murlock;
      expect([before.longPayment, after.longPayment]).toEqual(['MurLockException', 'done']);
    });

    it('without an id, theirs has one lock for all orders, ours refuses', () => {
      const { before, after } = seen.murlock;
      expect([before.withoutId, before.keysInPay]).toEqual(['done', ['Orders:pay:[object Object]']]);
      expect([after.withoutId, after.keysInPay]).toEqual(['InvalidResourceError', []]);
    });

    it('theirs waits for itself until it gives up, ours says so at once', () => {
      expect(seen.nestedCalls).toEqual({ theirs: 'MurLockException', ours: 'LockReentryError' });
    });
  });

  describe('from @nestjs-redis/lock', () => {
    it.each(['before', 'after'] as const)('%s: one count at a time, one move at a time', (version) => {
      const { counts, longMoves } = seen.nestjsRedis[version];
      expect({ counts, longMoves }).toEqual({ counts: ALONE, longMoves: ALONE });
    });

    it('their decorator ends with its ttl, ours is renewed', () => {
      const { before, after } = seen.nestjsRedis;
      expect([before.longCounts, after.longCounts]).toEqual([TOGETHER, ALONE]);
    });

    it('without options, theirs lasts for 100 ms', () => {
      const { before, after } = seen.defaults;
      expect(before.calls.atOnce).toBeGreaterThan(1);
      expect(after.calls.atOnce).toBe(1);
    });

    it('theirs loses what a decorator below it has marked, such as a route', () => {
      const { before, after } = seen.defaults;
      expect([before.route, after.route]).toEqual([undefined, '/']);
    });

    it('theirs takes an outage for a held lock, ours says which it is', () => {
      const theirs = 'Failed to acquire lock for resource: a';
      expect(seen.down).toEqual({ theirs, ours: 'LockUnavailableError' });
    });
  });

  it('with its lock inside of ours, ours and @nestjs-redis/lock exclude each other', () => {
    expect(seen.deploy).toEqual({ without: TOGETHER, with: ALONE });
  });

  describe('from redlock 4', () => {
    it('one transfer at a time, which ends with its ttl', () => {
      const { transfers, longTransfers } = seen.redlock4;
      expect([transfers, longTransfers]).toEqual([ALONE, TOGETHER]);
    });

    it('retries, whatever one call asks for', () => {
      expect(seen.redlock4.withoutRetry).toMatch(/^Exceeded 2 attempts/);
    });
  });
});
