import { fifo } from './fifo.js';
import { type Story, story } from '../story.js';

/** `a` holds it; `b` waits, and `c` behind it; then they get it with these tokens. */
function queued(tokenOfB: number, tokenOfC: number, told: Story = story()): Story {
  const [b, c] = tokenOfB < tokenOfC ? [20, 30] : [30, 20];
  return told
    .hold('a', 'stock', { from: 0, to: 10, token: 64 })
    .queue(8, { a: 64 }, ['b', 'c'])
    .hold('b', 'stock', { asked: 2, from: b, to: b + 5, token: tokenOfB })
    .hold('c', 'stock', { asked: 3, from: c, to: c + 5, token: tokenOfC });
}

describe('fifo', () => {
  it('accepts the order of the queue, and counts the pairs', () => {
    expect(fifo(queued(128, 192).history)).toEqual({ rule: 'fifo', looked: 1, violations: [] });
  });

  it('finds one that overtook', () => {
    const { violations } = fifo(queued(192, 128).history);
    expect(violations).toHaveLength(1);
    expect(violations[0]!.what).toMatch(/^c .*token 128.* before b .*token 192/);
  });

  it('finds it between any two, not neighbours only', () => {
    const { history } = story()
      .queue(8, {}, ['b', 'c', 'd'])
      .hold('d', 'stock', { asked: 2, from: 10, to: 11, token: 64 })
      .hold('c', 'stock', { asked: 2, from: 12, to: 13, token: 192 })
      .hold('b', 'stock', { asked: 2, from: 14, to: 15, token: 128 });
    // c before d, b before d; and c and b, whose tokens are right.
    expect(fifo(history)).toMatchObject({ looked: 3, violations: { length: 2 } });
  });

  it('leases handed on inside a process took no place in the queue', () => {
    const { history } = queued(128, 192).hold('a', 'stock', { asked: 1, from: 11, to: 12, token: 65 });
    expect(fifo(history).violations).toEqual([]);
    const local = story()
      .queue(8, { c: 64 }, ['b', 'c'])
      .hold('c', 'stock', { from: 0, to: 9, token: 64 })
      .hold('c', 'stock', { asked: 1, from: 10, to: 12, token: 65 })
      .hold('b', 'stock', { asked: 2, from: 13, to: 14, token: 128 })
      .hold('c', 'stock', { asked: 3, from: 15, to: 16, token: 192 });
    expect(fifo(local.history)).toMatchObject({ looked: 1, violations: [] });
  });

  it('what polls took no place either', () => {
    const { history } = queued(128, 192).hold('c', 'stock', {
      asked: 2,
      from: 15,
      to: 16,
      token: 48 * 64,
      queues: false,
    });
    expect(fifo(history).violations).toEqual([]);
  });

  it('the turn before the queue was seen is not the next one', () => {
    const before = queued(192, 256).hold('c', 'stock', { from: -20, to: -10, until: -10, token: 128 });
    expect(fifo(before.history)).toMatchObject({ looked: 1, violations: [] });
  });

  it('says nothing where a turn ended in the moment of the look', () => {
    const { history } = queued(192, 256).hold('c', 'stock', { from: 7, to: 7.8, token: 128 });
    expect(fifo(history)).toMatchObject({ looked: 0, violations: [] });
  });

  it.each<[string, (told: Story) => Story]>([
    [
      'was struck',
      (told) => told.fault('sigstop', { from: 9, to: 12, victims: ['b'] }).waits('d', 'other', { asked: 1 }),
    ],
    [
      'had been struck a moment before',
      (told) => told.fault('kill-connection', { from: -50, to: -40, victims: ['b'] }),
    ],
    ['stood still', (told) => told.stall('b', -100, 15)],
    ['stood still for a short time, twice', (told) => told.stall('b', -100, -20).stall('b', 12, 92)],
    ['stood still for a short time, as its network did', (told) => told.stall('b', -100, -20).stall('chaos', 12, 92)],
    ['gave up', (told) => told.refused('b', 'stock', { asked: 1, at: 12, code: 'LOCK_TIMEOUT', waitMs: 11 })],
    [
      'had given up, and may have left a place',
      (told) => told.refused('b', 'stock', { asked: -9, at: 5, code: 'LOCK_TIMEOUT' }),
    ],
    ['waits for several at once, and nobody knows for which', (told) => told.waits('b', ['stock', 'x'], { asked: 1 })],
    ['is closing', (told) => told.closes('b', 9)],
    ['was just started', (told) => told.add({ type: 'started', process: 'b', at: -1 })],
    ['had two places', (told) => told.queue(8, { a: 64 }, [])],
  ])('is promised nothing: one that %s', (why, disturb) => {
    if (why === 'had two places') {
      const told = story()
        .queue(8, { a: 64 }, ['b', 'c', 'b'])
        .hold('b', 'stock', { asked: 2, from: 30, to: 35, token: 192 })
        .hold('c', 'stock', { asked: 2, from: 20, to: 25, token: 128 });
      return expect(fifo(told.history)).toMatchObject({ looked: 0, violations: [] });
    }
    expect(fifo(disturb(queued(192, 128)).history)).toMatchObject({ violations: [] });
  });

  it('and nobody where Redis was struck, or slow', () => {
    const down = queued(192, 128).fault('redis-stop', { from: 9, to: 12, victims: ['a', 'b', 'c'] });
    expect(fifo(down.history).violations).toEqual([]);
    const slow = queued(192, 128).add({
      type: 'queue',
      process: 'chaos',
      from: 10,
      at: 110,
      resource: 'other',
      holders: [],
      waiters: [],
    });
    expect(fifo(slow.history).violations).toEqual([]);
  });

  it('a short standstill costs nobody a place', () => {
    expect(fifo(queued(192, 128).stall('b', 9, 60).history).violations).toHaveLength(1);
    const farApart = queued(192, 128).stall('b', -400, -320).stall('b', 9, 89);
    expect(fifo(farApart.history).violations).toHaveLength(1);
    const tooLate = queued(192, 128).stall('b', -100, -20).stall('b', 26, 106);
    expect(fifo(tooLate.history).violations).toHaveLength(1);
    const tooShort = queued(192, 128).stall('b', -100, -40).stall('b', 12, 72);
    expect(fifo(tooShort.history).violations).toHaveLength(1);
    const saidTwice = queued(192, 128).stall('b', -100, -40).stall('chaos', -100, -40).stall('b', 9, 60);
    expect(fifo(saidTwice.history).violations).toHaveLength(1);
    const ofAnother = queued(192, 128).stall('c', -100, -20).stall('b', 9, 89);
    expect(fifo(ofAnother.history).violations).toHaveLength(1);
  });

  it('what strikes the one behind, or came later, excuses nobody', () => {
    const behind = queued(192, 128).fault('sigstop', { from: 9, to: 12, victims: ['c'] });
    expect(fifo(behind.history).violations).toHaveLength(1);
    const later = queued(192, 128)
      .fault('sigstop', { from: 26, to: 28, victims: ['b'] })
      .refused('b', 'stock', { asked: 40, at: 50, code: 'LOCK_TIMEOUT' });
    expect(fifo(later.history).violations).toHaveLength(1);
  });

  it('readers that are let in together have ticks in the order of the queue', () => {
    const { history } = story()
      .hold('a', 'stock', { mode: 'write', from: 0, to: 10, token: 64 })
      .queue(8, { a: 64 }, ['b', 'c'])
      .hold('b', 'stock', { mode: 'read', asked: 2, from: 12, to: 20, token: 192 })
      .hold('c', 'stock', { mode: 'read', asked: 2, from: 11, to: 20, token: 128 });
    expect(fifo(history).violations).toHaveLength(1);
  });
});
