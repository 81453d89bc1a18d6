import { gaps, spreadOf } from './gaps.js';
import { story, type Story } from '../story.js';

const MANY = ['other', 'stock'];

describe('gaps', () => {
  it('after a dead holder: from its death to the next grant', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 0, until: 290, token: 32, ends: 'never' })
      .fault('kill', { from: 100, to: Infinity, victims: ['a'] })
      .died('a', 101)
      .hold('b', 'stock', { asked: 50, from: 401, to: 410, token: 64 })
      .hold('c', 'other', { asked: 1, from: 2, to: 3, token: 64 });
    const found = gaps(history);
    expect([...found.keys()]).toEqual(['died: kill']);
    expect(spreadOf(found.get('died: kill')!)).toEqual({ count: 1, medianMs: 300, maxMs: 300, maxLeases: 1 });
  });

  describe('after a dead holder, and another one that would have been next', () => {
    const between = (tell: (story: Story) => Story) =>
      gaps(
        tell(
          story()
            .hold('a', 'stock', { from: 0, to: 0, until: 290, token: 32, ends: 'never' })
            .died('a', 101)
            .waits('c', 'stock', { asked: 40 })
            .hold('b', 'stock', { asked: 50, from: 601, to: 610, token: 64 }),
        ).history,
      ).get('died: no fault');

    it.each<[string, number, (story: Story) => Story]>([
      ['dies: from its death', 301, (told) => told.died('c', 300)],
      [
        'stands still: from the beginning of that',
        351,
        (told) => told.fault('sigstop', { from: 250, to: 800, victims: ['c'] }).stall('c', 250, 800),
      ],
      ['died long before', 500, (told) => told.died('c', 60)],
      ['stands still for a moment', 500, (told) => told.stall('c', 250, 310)],
    ])('%s', (_, ms, tell) => expect(between(tell)).toMatchObject([{ ms }]));

    it.each<[string, (story: Story) => Story]>([
      ['is cut off: not measured', (told) => told.fault('silent', { from: 250, to: 800, victims: ['c'] })],
      [
        'does not hear messages: not measured',
        (told) => told.fault('subscriber hears nothing', { from: 250, to: 800, victims: ['c'] }),
      ],
    ])('%s', (_, tell) => expect(between(tell)).toBeUndefined());
  });

  it('after one that stood still: from when its loop last ran', () => {
    const { history } = story()
      .hold('a', 'stock', { as: 'one', from: 0, to: 900, until: 290, token: 32 })
      .fault('sigstop', { from: 100, to: 700, victims: ['a'] })
      .lost('a', 'one', { at: 700, until: 290, loopRanAt: 99 })
      .hold('b', 'stock', { asked: 50, from: 399, to: 410, token: 64 });
    expect(gaps(history).get('stopped: sigstop')).toMatchObject([{ ms: 300 }]);
  });

  it('nothing where nobody waited, or Redis was struck as well', () => {
    const died = story().hold('a', 'stock', { from: 0, to: 0, until: 290, token: 32, ends: 'never' }).died('a', 101);
    const late = story()
      .add(...died.entries)
      .hold('b', 'stock', { asked: 390, from: 401, to: 410, token: 64 });
    expect(gaps(late.history).size).toBe(0);
    const struck = story()
      .add(...died.entries)
      .hold('b', 'stock', { asked: 50, from: 401, to: 410, token: 64 });
    struck.fault('redis-stop', { from: 200, to: 210, victims: ['a', 'b'] });
    expect(gaps(struck.history).has('died: no fault')).toBe(false);
  });

  it('after a lost message: from the release to the grant of one that did not hear of it', () => {
    const told = (victim: string) =>
      story()
        .fault('subscriber-black-hole', { from: 0, to: 500, victims: [victim] })
        .hold('c', 'other', { asked: -5, from: 2, to: 3, token: 64 })
        .hold('a', 'stock', { asked: -5, from: 0, to: 100, token: 32 })
        .hold('b', 'stock', { asked: 50, from: 190, to: 200, token: 64 }).history;
    expect(gaps(told('b')).get('message: subscriber-black-hole')).toMatchObject([{ from: 100, ms: 90 }]);
    expect(gaps(told('c')).size).toBe(0);
  });

  it('after a lost message: not where one gave up that had not heard of it, and the next did not hear of that', () => {
    const { history } = story()
      .fault('subscriber-black-hole', { from: 0, to: 500, victims: ['b'] })
      .hold('a', 'stock', { asked: -5, from: 0, to: 100, token: 32 })
      .refused('b', 'stock', { asked: 40, at: 150, code: 'LOCK_ABORTED' })
      .hold('b', 'stock', { asked: 50, from: 290, to: 300, token: 64 });
    expect(gaps(history).size).toBe(0);
  });

  it.each(['a', 'c'])(
    'after a lost message: not where %s was struck by something else, who released or waited too',
    (struck) => {
      const { history } = story()
        .fault('subscriber-black-hole', { from: 0, to: 500, victims: ['b'] })
        .fault('delay', { from: 90, to: 120, victims: [struck] })
        .hold('a', 'stock', { asked: -5, from: 0, to: 100, token: 32 })
        .waits('c', 'stock', { asked: 40 })
        .hold('b', 'stock', { asked: 50, from: 290, to: 300, token: 64 });
      expect(gaps(history).has('message: subscriber-black-hole')).toBe(false);
    },
  );

  describe('after a lost message: not where it was a part of what another call had before the next', () => {
    const between = (tell: (story: Story) => Story) =>
      tell(
        story()
          .fault('subscriber-black-hole', { from: 0, to: 500, victims: ['b'] })
          .hold('a', 'stock', { asked: -5, from: 0, to: 100, token: 32 }),
      ).hold('b', 'stock', { asked: 50, from: 290, to: 300, token: 128 }).history;

    it.each<[string, number, (story: Story) => Story]>([
      [
        'and has got the others later',
        0,
        (told) => told.hold('c', MANY, { asked: 40, from: 280, to: 285, token: [1, 64] }),
      ],
      ['and gave up', 0, (told) => told.refused('c', MANY, { asked: 40, at: 289, code: 'LOCK_TIMEOUT' })],
      ['and died', 0, (told) => told.waits('c', MANY, { asked: 40 }).died('c', 120)],
      ['though one asks for it later', 1, (told) => told.waits('c', MANY, { asked: 400 })],
      ['though it had it before', 1, (told) => told.hold('c', MANY, { asked: -90, from: -20, to: -9, token: [1, 16] })],
      [
        'though it got it after that',
        1,
        (told) => told.hold('c', MANY, { asked: 40, from: 330, to: 340, token: [1, 256] }),
      ],
    ])('%s (%d)', (_, count, tell) => {
      const found = gaps(between(tell)).get('message: subscriber-black-hole') ?? [];
      expect(found.filter(({ from }) => from === 100)).toHaveLength(count);
    });
  });

  it('after Redis is back: to the next grant of what nobody held', () => {
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 100, token: 32 })
      .fault('redis-restart', { from: 110, to: 400, victims: ['a', 'b'] })
      .hold('b', 'stock', { asked: 120, from: 450, to: 460, token: 64 })
      .hold('b', 'other', { from: 0, to: 500, token: 64 })
      .hold('a', 'other', { asked: 100, from: 501, to: 502, token: 96 });
    const found = gaps(history);
    expect([...found.keys()]).toEqual(['redis: redis-restart']);
    expect(found.get('redis: redis-restart')).toMatchObject([{ resource: 'stock', ms: 50 }]);
  });

  it('are counted while a connection for messages hangs, unless something else holds its process up', () => {
    const kind = 'network: the connection for messages hangs';
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 32 })
      .hold('b', 'stock', { from: 20, to: 30, token: 64 })
      .fault(kind, { from: 100, to: 2_100, victims: ['a'] })
      .fault(kind, { from: 3_000, to: 6_000, victims: ['a'] })
      .fault(kind, { from: 7_000, to: 9_000, victims: ['b'] })
      .fault('Redis: kill', { from: 5_000, to: 5_100, victims: ['a', 'b'] })
      .stall('b', 8_000, 8_200);
    expect(gaps(history).get(`inbox: ${kind}`)).toEqual([
      { resource: '', from: 100, to: 2_100, ms: 2_000, leaseMs: 300 },
    ]);
  });

  it('are not counted of a connection that hangs before a message has arrived: it is made anew later', () => {
    const kind = 'network: the connection for messages hangs';
    const { history } = story()
      .hold('a', 'stock', { from: 0, to: 10, token: 32 })
      .hold('b', 'stock', { from: 20, to: 30, token: 64 })
      .fault(kind, { from: 100, to: 2_100, victims: ['a'] })
      .fault(kind, { from: 2_400, to: 6_300, victims: ['a'] })
      .fault('network: resets the connections', { from: 7_000, to: 7_100, victims: ['b'] })
      .fault(kind, { from: 8_400, to: 10_400, victims: ['a'] });
    expect(
      gaps(history)
        .get(`inbox: ${kind}`)
        ?.map(({ from }) => from),
    ).toEqual([100, 8_400]);
  });
});
