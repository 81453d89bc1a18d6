import fc from 'fast-check';
import { decodeResource, encodeResource, Keys } from '../../lib/redis/keys.js';

/** Names that are made to collide. */
const hostile = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom('{', '}', '%', ':', '7', 'B', 'D', '2', '5', '\0', '\n', 'waiters', 'tick', 'fence'),
    maxLength: 8,
  }),
);

describe('keys', () => {
  it('encode a resource so that it can be decoded again', () => {
    fc.assert(
      fc.property(hostile, (name) => {
        expect(decodeResource(encodeResource(name))).toBe(name);
      }),
      { seed: 20_260_101 },
    );
  });

  it('have no brace, no control character and no line break in an encoded resource', () => {
    fc.assert(
      fc.property(hostile, (name) => {
        expect(encodeResource(name)).not.toMatch(/[{}\u0000-\u001f\u007f]/);
      }),
      { seed: 20_260_101 },
    );
  });

  it('leave ordinary names readable', () => {
    expect(new Keys('lock').lock('order:42 é🔒')).toBe('lock:{order:42 é🔒}');
  });

  it('never name the same thing for two resources', () => {
    const keys = new Keys('lock');
    const everything = (name: string, tick: string) => [
      keys.lock(name),
      keys.waiters(name),
      keys.tick(name, tick),
      keys.latch(name),
      keys.latchWaiters(name),
      keys.fence(keys.lock(name)),
      keys.inbox(name),
    ];
    fc.assert(
      fc.property(hostile, hostile, hostile, (a, b, tick) => {
        fc.pre(a !== b);
        const shared = everything(a, tick).filter((key) => everything(b, tick).includes(key));
        expect(shared).toEqual([keys.fence(keys.lock(a))]);
      }),
      { seed: 20_260_101 },
    );
  });

  it('keep everything of one resource in one slot of a cluster', () => {
    const keys = new Keys('lock');
    fc.assert(
      fc.property(hostile, hostile, (name, tick) => {
        fc.pre(name !== '');
        const tag = (key: string) => /\{([^}]*)\}/.exec(key)?.[1];
        const all = [
          keys.lock(name),
          keys.waiters(name),
          keys.tick(name, tick),
          keys.latch(name),
          keys.latchWaiters(name),
        ];
        expect(new Set(all.map(tag)).size).toBe(1);
        expect(tag(keys.lock(name))).toBe(encodeResource(name));
      }),
      { seed: 20_260_101 },
    );
  });

  it.each([
    ['{a}', 'lock:{%7Ba%7D}'],
    ['%7Ba%7D', 'lock:{%257Ba%257D}'],
    ['a}:waiters', 'lock:{a%7D:waiters}'],
    ['line\nbreak', 'lock:{line%0Abreak}'],
    ['nul\0', 'lock:{nul%00}'],
    ['__proto__', 'lock:{__proto__}'],
  ])('%j is %s', (name, key) => {
    expect(new Keys('lock').lock(name)).toBe(key);
  });
});
