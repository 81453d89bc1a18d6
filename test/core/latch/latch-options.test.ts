import { InvalidLockOptionsError } from '../../../lib/core/api/errors.js';
import { rejection } from '../../support/expect/eventually.js';
import { LatchWorld } from '../../support/world/latch-world.js';

const DAY_MS = 24 * 60 * 60 * 1000;

describe('a latch that cannot be right', () => {
  const { latches, store } = new LatchWorld().instance('a');

  it.each([
    ['no name', undefined, 1, undefined, 'resource'],
    ['an empty name', '', 1, undefined, 'resource'],
    ['a lone surrogate', '\ud800', 1, undefined, 'resource'],
    ['a name of 513 bytes', 'x'.repeat(513), 1, undefined, 'resource'],
    ['no count', 'x', undefined, undefined, 'count'],
    ['a count of null', 'x', null, undefined, 'count'],
    ['nothing to count', 'x', 0, undefined, 'count'],
    ['too many', 'x', 1_000_001, undefined, 'count'],
    ['half a count', 'x', 1.5, undefined, 'count'],
    ['a text', 'x', '5', undefined, 'count'],
    ['a TTL under a second', 'x', 1, { ttlMs: 999 }, 'ttlMs'],
    ['a TTL over 30 days', 'x', 1, { ttlMs: 30 * DAY_MS + 1 }, 'ttlMs'],
    ['a TTL without end', 'x', 1, { ttlMs: Infinity }, 'ttlMs'],
    ['a misspelt option', 'x', 1, { ttl: 1_000 }, 'ttl'],
    ['options that are none', 'x', 1, 5, 'The options of latch'],
  ])('is refused: %s', (_what, name, count, options, option) => {
    let error: unknown;
    try {
      latches.latch(name as string, count as number, options as object);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option });
  });

  it.each([
    ['an empty id', 'countDown', { id: '' }, 'id'],
    ['an id that is no text', 'countDown', { id: 5 }, 'id'],
    ['an id of 513 bytes', 'countDown', { id: 'ü'.repeat(257) }, 'id'],
    ['an id with a lone surrogate', 'countDown', { id: '\udc00' }, 'id'],
    ['an id in place of options', 'countDown', 'shard-3', 'The options of countDown'],
    ['a misspelt option', 'countDown', { key: 'x' }, 'key'],
    ['a negative wait', 'wait', { waitMs: -1 }, 'waitMs'],
    ['a signal that is none', 'wait', { signal: {} }, 'signal'],
    ['a misspelt option', 'wait', { waitms: 1 }, 'waitms'],
  ] as const)('is refused before anything is sent: %s', async (_what, verb, options, option) => {
    const error = await rejection(latches.latch('x', 1)[verb](options as object));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option });
    expect(store.commands).toEqual([]);
  });

  it('is made of what is allowed, and sends nothing', () => {
    const latch = latches.latch('x'.repeat(512), 1_000_000, { ttlMs: 30 * DAY_MS });
    expect(latch).toMatchObject({ name: 'x'.repeat(512), count: 1_000_000 });
    latches.latch('x', 1, { ttlMs: 1_000 });
    expect(store.commands).toEqual([]);
  });

  it('lives for a day where nothing else is said', async () => {
    const world = new LatchWorld();
    await world.instance('a').latches.latch('x', 2).countDown();
    await world.clock.advance(DAY_MS - 1);
    expect(world.server.isEmpty).toBe(false);
    await world.clock.advance(1);
    expect(world.server.isEmpty).toBe(true);
  });
});
