import { renewedTooLate } from '../../../../lib/kernel/acquiring/acquire-errors.js';
import { grantedTooLate } from '../../../../lib/kernel/store/ask.js';
import { outcomes } from './outcomes.js';
import { type Story, story } from '../story.js';

type Refused = Parameters<Story['refused']>[2];

/** The lease is of 300 ms, an answer takes 600 ms at most: after an outage of 1,025 ms the last attempt has failed. */
const OUTAGE = { from: 1_000, to: 4_000, victims: ['a', 'b'] };

function isRight(refused: Refused, tell: (told: Story) => Story = (told) => told): boolean {
  const { history } = tell(story().refused('a', 'stock', refused));
  const { looked, violations } = outcomes(history);
  expect(looked).toBe(1);
  return violations.length === 0;
}

const outage = (told: Story): Story =>
  told
    .fault('Redis: gone', OUTAGE)
    .unanswered(OUTAGE.from, OUTAGE.to, OUTAGE.victims)
    // Whose end is long before all this, so that the history has a time to live.
    .hold('b', 'other', { from: 1, to: 2, token: 32 });

/** The same for longer. */
const lasting = (told: Story): Story =>
  told
    .fault('Redis: gone', { ...OUTAGE, to: 9_000 })
    .unanswered(OUTAGE.from, 9_000, OUTAGE.victims)
    .hold('b', 'other', { from: 1, to: 2, token: 32 });

describe('outcomes of a call that waits while Redis answers nothing', () => {
  const waits = (at: number, code: string): Refused => ({ asked: 500, at, waitMs: at - 500, code });

  it('is an outage when the last attempt must have failed', () => {
    expect(isRight(waits(2_100, 'LOCK_TIMEOUT'), outage)).toBe(false);
    expect(isRight(waits(2_100, 'LOCK_BUSY'), outage)).toBe(false);
    expect(isRight(waits(2_100, 'LOCK_UNAVAILABLE'), outage)).toBe(true);
  });

  it('may be either before that, and when Redis is back', () => {
    for (const at of [900, 1_900, 4_001]) expect(isRight(waits(at, 'LOCK_TIMEOUT'), outage)).toBe(true);
    for (const at of [1_001, 1_900, 4_001]) expect(isRight(waits(at, 'LOCK_UNAVAILABLE'), outage)).toBe(true);
  });

  it('may be either where only others were struck', () => {
    const ofB = (told: Story): Story =>
      told.fault('x', { ...OUTAGE, victims: ['b'] }).unanswered(OUTAGE.from, OUTAGE.to, ['b']);
    expect(isRight(waits(2_100, 'LOCK_TIMEOUT'), ofB)).toBe(true);
    expect(isRight(waits(2_100, 'LOCK_UNAVAILABLE'), ofB)).toBe(false);
  });

  it('may be busy where its own process had the resource until a moment ago', () => {
    const held = (to: number) => (told: Story) =>
      outage(told).hold('a', 'stock', { from: 400, to, until: to, token: 64 });
    expect(isRight(waits(2_400, 'LOCK_TIMEOUT'), held(2_300))).toBe(true);
    expect(isRight(waits(2_400, 'LOCK_TIMEOUT'), held(1_200))).toBe(false);
  });

  it('may be busy where the process stood still, and its attempts could not end', () => {
    const still = (told: Story): Story => outage(told).stall('a', 1_500, 2_000);
    expect(isRight(waits(2_400, 'LOCK_TIMEOUT'), still)).toBe(true);
    expect(isRight(waits(2_600, 'LOCK_TIMEOUT'), still)).toBe(false);
  });

  it('is an outage at once for a call that asks once', () => {
    const tried: Refused = { asked: 1_001, at: 1_010, waitMs: 0, queues: false, code: null };
    expect(isRight(tried, outage)).toBe(false);
    expect(isRight({ ...tried, asked: 999 }, outage)).toBe(true);
    expect(isRight({ ...tried, code: 'LOCK_UNAVAILABLE' }, outage)).toBe(true);
  });

  it('is an outage after a probe and an answer, however seldom a place is kept with a long lease', () => {
    const long = (at: number): Refused => ({ ...waits(at, 'LOCK_TIMEOUT'), leaseMs: 30_000 });
    // A probe comes after 1,750 ms at most, 1,000 ms later it has no answer, and a timer may ring 300 ms late.
    expect(isRight(long(4_049), lasting)).toBe(true);
    expect(isRight(long(4_051), lasting)).toBe(false);
  });

  it('says why Redis was unavailable', () => {
    expect(isRight({ ...waits(2_100, 'LOCK_UNAVAILABLE'), hasCause: true }, outage)).toBe(true);
    expect(isRight({ ...waits(2_100, 'LOCK_UNAVAILABLE'), hasCause: false }, outage)).toBe(false);
  });
});

describe('outcomes of a call that waits while somebody else holds the resource', () => {
  const waits: Refused = { asked: 1_000, at: 2_000, waitMs: 1_000, code: 'LOCK_UNAVAILABLE' };

  it('is not an outage', () => {
    expect(isRight({ ...waits, code: 'LOCK_TIMEOUT' })).toBe(true);
    expect(isRight(waits)).toBe(false);
  });

  it('may be one where its process was struck a moment before', () => {
    const struck = (to: number) => (told: Story) => told.fault('x', { from: 10, to, victims: ['a'] });
    expect(isRight(waits, struck(200))).toBe(true);
    expect(isRight(waits, struck(50))).toBe(false);
  });

  it('may be one where its process stood still for so long that it read no answer', () => {
    expect(isRight(waits, (told) => told.stall('a', 1_500, 1_625))).toBe(true);
    expect(isRight(waits, (told) => told.stall('a', 1_500, 1_624))).toBe(false);
  });

  it('may be one where Redis answered somebody else so late', () => {
    expect(isRight(waits, (told) => told.late(1_500, 1_626))).toBe(true);
    expect(isRight(waits, (told) => told.late(1_500, 1_625))).toBe(false);
  });

  it.each([grantedTooLate(), renewedTooLate()])(
    'may be one where it missed a part of its lease, and $message',
    (why) => {
      const refused = { ...waits, why: `Redis could not acquire "stock": ${why.message}` };
      // A quarter of 300 ms.
      const still = (ms: number) => (told: Story) => told.stall('a', 1_500, 1_500 + ms);
      expect(isRight(refused, still(75))).toBe(true);
      expect(isRight(refused, still(74))).toBe(false);
      const long = { ...refused, leaseMs: 2_000 };
      expect([125, 124].map((ms) => isRight(long, still(ms)))).toEqual([true, false]);
    },
  );

  it('may be one where it had no time to be answered', () => {
    expect(isRight({ ...waits, asked: 1_600, waitMs: 400 })).toBe(true);
  });
});
