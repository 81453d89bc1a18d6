import { OTHER_GROUP } from '../../../lib/kernel/api/holder.js';
import { Groups, MAX_GROUPS, MAX_NAMES_OF_CODE, type RegisteredGroup } from '../../../lib/kernel/events/observers.js';

describe('the group of a resource', () => {
  it.each([
    ['order:7', 'order'],
    ['order:7:items', 'order'],
    ['заказ:7', 'заказ'],
    ['report', 'report'],
    ['nightly-report', 'nightly-report'],
    ['oauth2.refresh', 'oauth2.refresh'],
    ['отчёт', 'отчёт'],
    ['4711', OTHER_GROUP],
    ['user-4711', OTHER_GROUP],
    ['b1946ac9-2f3e-4a7c-9d55-0c1e7a1f6b3d', OTHER_GROUP],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAV', OTHER_GROUP],
    ['Jane Doe', OTHER_GROUP],
    ['_unknown', OTHER_GROUP],
    ['x'.repeat(101), OTHER_GROUP],
    ['jane@example.org', OTHER_GROUP],
    ['jane@example.org:cart', OTHER_GROUP],
    [':7', OTHER_GROUP],
    ['<b>x</b>:7', OTHER_GROUP],
    ['a\u202eb:7', OTHER_GROUP],
    ['a\nb:7', OTHER_GROUP],
    [`${'😀'.repeat(20)}:7`, OTHER_GROUP],
    [`${'x'.repeat(101)}:7`, OTHER_GROUP],
  ])('%p is in %p', (resource, group) => {
    expect(new Groups().of(resource)).toBe(group);
  });

  it('is the result of the function of the user', () => {
    expect(new Groups((resource) => resource.split('/')[1]!).of('shop/order/7')).toBe('order');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no such table');
      },
      'threw "no such table"',
    ],
    ['returns nothing', () => undefined as never, 'undefined'],
    ['returns an empty text', () => '', '""'],
    ['returns a long text', () => 'x'.repeat(101), '"xxx'],
    ['returns HTML', () => '<script>', '"<script>"'],
    ['returns a text with a line break', () => 'a\nb', String.raw`"a\nb"`],
  ])('is _other if that %s, with one warning', (_, ofResource, shown) => {
    const lines: string[] = [];
    const groups = new Groups(ofResource, (line) => lines.push(line));
    expect([groups.of('a'), groups.of('b')]).toEqual([OTHER_GROUP, OTHER_GROUP]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('module option group');
    expect(lines[0]).toContain(shown);
  });

  it('is _other if that is async, whose error does not end the process', async () => {
    const lines: string[] = [];
    const ofResource = (): never => Promise.reject(new Error('no such table')) as never;
    expect(new Groups(ofResource, (line) => lines.push(line)).of('a')).toBe(OTHER_GROUP);
    // The test fails by a rejection that nothing handles.
    await new Promise(setImmediate);
    expect(lines).toHaveLength(1);
  });

  it('is one of 200: hostile keys cannot displace registered ones, before or after them', () => {
    const groups = new Groups();
    groups.register('method', 'Orders.pay');
    for (let i = 0; i < 10_000; i++) groups.of(`hostile${i}:x`);
    groups.register('job', 'nightly report');
    expect(groups.of('x', 'Orders.pay')).toBe('Orders.pay');
    expect(groups.of('x', 'nightly report')).toBe('nightly report');
    const seen = new Set(Array.from({ length: 10_000 }, (_, i) => groups.of(`hostile${i}:x`)));
    // One place was taken at boot, and one more name is for all others.
    expect(seen.size).toBe(MAX_GROUPS - 1 + 1);
    expect(seen).toContain(OTHER_GROUP);
    expect(groups.of('late:1')).toBe(OTHER_GROUP);
  });

  it('reserves room for names with a colon, if data produces names without one', () => {
    const groups = new Groups();
    groups.register('method', 'Orders.pay');
    const letters = (i: number) =>
      `user-${String.fromCharCode(
        ...String(i)
          .split('')
          .map((digit) => 97 + Number(digit)),
      )}`;
    const seen = new Set(Array.from({ length: 10_000 }, (_, i) => groups.of(letters(i))));
    expect(seen.size).toBe(MAX_NAMES_OF_CODE + 1);
    expect(seen).toContain(OTHER_GROUP);
    // Known groups keep their names, and so does a method.
    expect([groups.of(letters(0)), groups.of('Orders.pay')]).toEqual([letters(0), 'Orders.pay']);
    const prefixes = new Set(Array.from({ length: 1_000 }, (_, i) => groups.of(`kind${i}:7`)));
    expect(prefixes.size).toBe(MAX_GROUPS - 1 - MAX_NAMES_OF_CODE + 1);
  });

  it('keeps names free of characters that a terminal or a page would execute', () => {
    const groups = new Groups();
    groups.register('leadership', 'a<b>\u202e', 'exclusive', 'leader:a<b>\u202e');
    expect(groups.of('leader:a<b>\u202e', 'leader:a<b>\u202e')).toBe('leader:a_b__');
    const letters = '\u{1d49c}'.repeat(150);
    groups.register('job', letters);
    expect(groups.of('job:1', letters)).toBe('\u{1d49c}'.repeat(100));
  });

  it('is announced to a listener once, including earlier ones, until it leaves', () => {
    const groups = new Groups();
    const told: RegisteredGroup[] = [];
    groups.register('method', 'Orders.pay', 'write');
    const stop = groups.onRegistered((registered) => told.push(registered));
    groups.register('method', 'Orders.pay', 'write');
    groups.register('job', 'nightly');
    stop();
    groups.register('job', 'later');
    expect(told).toEqual([
      { kind: 'method', group: 'Orders.pay', mode: 'write', name: 'Orders.pay' },
      { kind: 'job', group: 'nightly', mode: 'exclusive', name: 'nightly' },
    ]);
  });
});

describe('events without a listener', () => {
  it('compute no group, except for a lost lease', async () => {
    const { LockWorld } = await import('../../support/world/lock-world.js');
    let asked = 0;
    const world = new LockWorld();
    const group = () => `g${asked++}`;
    const { locks } = world.instance('a', { observers: [], group });
    const lease = await locks.acquire('stock');
    const waiting = locks.acquire('stock');
    await lease.release();
    await (await waiting).release();
    await locks.acquire('stock', { watchdog: false, leaseMs: 100 });
    expect(asked).toBe(0);
    await world.clock.advance(1_000);
    expect(await locks.tryAcquire('stock')).not.toBeNull();
    // The error of the lost lease names its group, and the event that this instance counts.
    expect(asked).toBe(2);
  });
});
