import { jest } from '@jest/globals';
import { reconnectPauses } from '../../../lib/redis/connection/ioredis-options.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

const CONNECTIONS = 2_000;
const LEASE_MS = 30_000;

describe('the pauses before a reconnect', () => {
  const random = new SeededRandom(1);
  beforeEach(() => {
    jest.spyOn(Math, 'random').mockImplementation(() => random.fraction());
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** The times at which each reaches a server that was down for `awayMs`. */
  const reconnects = (awayMs: number): number[] => {
    const pauseBefore = reconnectPauses(LEASE_MS);
    return Array.from({ length: CONNECTIONS }, () => {
      let at = 0;
      for (let attempt = 1; at < awayMs; attempt++) at += pauseBefore(attempt);
      return at;
    }).sort((a, b) => a - b);
  };
  const inBusiest = (times: readonly number[], windowMs: number): number => {
    const counts = times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length);
    return Math.max(...counts);
  };

  it.each([500, 1_000, 2_000, 5_000, 20_000])(
    'spread a fleet whose server was away for %i ms: at most a quarter in a tenth of a second',
    (awayMs) => {
      expect(inBusiest(reconnects(awayMs), 100)).toBeLessThan(CONNECTIONS / 4);
    },
  );

  it('are a few milliseconds at first, and never longer than a second or a third of a lease', () => {
    const longest = (leaseMs: number, attempt: number): number => {
      const pauseBefore = reconnectPauses(leaseMs);
      return Math.max(...Array.from({ length: 200 }, () => pauseBefore(attempt)));
    };
    expect(longest(LEASE_MS, 1)).toBeLessThanOrEqual(20);
    expect(longest(LEASE_MS, 100)).toBeLessThanOrEqual(1_000);
    expect(longest(600, 100)).toBeLessThanOrEqual(200);
  });
});
