import { countLeaks, type LeakCount, LEAKS } from './count-leaks.js';
import { CYCLES } from './cycles.js';

const LEASES = 100_000;

describe('locks that are acquired and released again and again', () => {
  let count: LeakCount;
  let leaking: LeakCount;

  beforeAll(async () => {
    [count, leaking] = await Promise.all([countLeaks({ cycles: LEASES }), countLeaks({ cycles: 300, leaks: LEAKS })]);
  });

  it('leave nothing behind, in every mode, and the process ends by itself', () => {
    expect(count.violations).toEqual([]);
    expect(count.cycles).toBeGreaterThanOrEqual(LEASES);
    expect(Object.keys(count.modes)).toHaveLength(CYCLES.length);
    const growth = `${(count.heapGrowth * 100).toFixed(1)} %`;
    console.log(
      `leaks: ${count.cycles} leases, nothing left, heap ${growth}, ended ${Math.round(count.endedAfterMs)} ms after`,
    );
  });

  it.each([
    ['a listener of a signal', /^listeners: signal/],
    ['a listener of a client', /^listeners: clients/],
    ['a listener of the process', /^listeners: process/],
    ['a key', /^keys/],
    ['a subscription', /^subscriptions/],
    ['memory', /^heap/],
    ['a timer', /^handles: Timeout/],
    ['a connection', /^connections/],
    ['a socket', /^handles: TCPSocketWrap/],
    ['a client', /^clients/],
    ['what keeps the process alive', /^the process did not end/],
    ['a warning', /^stderr: .*MaxListenersExceededWarning/],
  ])('would be found: %s', (_what, violation) => {
    expect(leaking.violations).toContainEqual(expect.stringMatching(violation));
  });
});
