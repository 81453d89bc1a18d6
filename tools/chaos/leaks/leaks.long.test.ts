import { countChurn } from './churn.js';
import { countLeaks, type LeakCount, LEAKS } from './count-leaks.js';
import { CYCLES } from './cycles.js';

/** The long form has a hundred thousand: `npm run chaos`. */
const LEASES = 2_000;

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

describe('waiters that come and give up behind a holder who is stuck', () => {
  it('are counted, and the longest script meanwhile', async () => {
    const { waiters, longest } = await countChurn({ waiters: 600 });
    expect(waiters).toBeGreaterThanOrEqual(600);
    // How long they may be is said by a run with a hundred times as many: npm run chaos.
    expect(longest).toHaveLength(3);
  });
});
