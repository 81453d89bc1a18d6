import { ExpiringMap } from '../../lib/quorum/candidates.js';
import { FakeClock } from '../support/world/fake-clock.js';

describe('a map whose entries expire', () => {
  it('forgets those that are over, behind one that lives for long too', () => {
    const clock = new FakeClock();
    const map = new ExpiringMap<number>(clock);
    map.set('lives for long', 0, 3_600_000);
    let most = 0;
    for (let n = 0; n < 10_000; n++) {
      map.set(`key ${n}`, n, 10);
      clock.standStill(1);
      most = Math.max(most, map.room);
    }
    expect(most).toBeLessThan(50);
    expect(map.get('lives for long')).toBe(0);
    expect(map.get('key 9998')).toBe(9_998);
    expect(map.get('key 9980')).toBeUndefined();
  });

  it('does so while many live, with no more room than twice as much', () => {
    const clock = new FakeClock();
    const map = new ExpiringMap<number>(clock);
    for (let n = 0; n < 1_000; n++) map.set(`lives ${n}`, n, 3_600_000);
    let most = 0;
    for (let n = 0; n < 20_000; n++) {
      map.set(`key ${n}`, n, 10);
      clock.standStill(1);
      most = Math.max(most, map.room);
    }
    expect(most).toBeLessThan(2_000);
    expect(map.get('lives 0')).toBe(0);
  });
});
