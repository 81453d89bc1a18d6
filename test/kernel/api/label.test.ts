import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import {
  describeHolders,
  describeLabel,
  HANDED_ON,
  type Holder,
  LABEL_BYTES,
  readLabel,
} from '../../../lib/kernel/api/holder.js';
import { encodeLabel } from '../../../lib/kernel/api/given-label.js';
import { LOCK_DEFAULTS, resolveLockOptions } from '../../../lib/kernel/api/lock-options.js';

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

describe('the label of a call', () => {
  it('is stored as JSON, without what is not set', () => {
    expect(
      encodeLabel({ group: 'Orders.pay', site: undefined, request: '7f', tries: 2, of: [true, null, { a: 1 }] }),
    ).toBe('{"group":"Orders.pay","request":"7f","tries":2,"of":[true,null,{"a":1}]}');
    expect(encodeLabel(Object.create(null))).toBeUndefined();
    expect(encodeLabel({})).toBeUndefined();
    expect(encodeLabel({ group: undefined })).toBeUndefined();
  });

  it('never contains a line end, so that it cannot imitate another holder', () => {
    expect(encodeLabel({ text: 'a\nshop-9/x 1 32 9999999999999\r\0' })).not.toMatch(/[\n\r\0]/);
  });

  it('may have 256 bytes, and not one more', () => {
    const fitting = { text: 'é'.repeat((LABEL_BYTES - '{"text":""}'.length - 1) / 2) + 'x' };
    expect(Buffer.byteLength(encodeLabel(fitting)!)).toBe(LABEL_BYTES);
    expect(() => encodeLabel({ text: `${fitting.text}x` })).toThrow(
      'label must have at most 256 bytes as JSON, not 257. Name the work in it, and store its data elsewhere.',
    );
  });

  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  const throwing = {
    get group(): string {
      throw new Error('not\nnow');
    },
  };

  it.each([
    ['a text', 'Orders.pay', 'must be a plain object'],
    ['null', null, 'must be a plain object'],
    ['a list', [1], 'must be a plain object'],
    ['a date', new Date(0), 'must be a plain object'],
    ['a map', new Map(), 'must be a plain object'],
    ['a function', () => ({}), 'must be a plain object'],
    ['one that contains itself', cyclic, 'cannot be made into text'],
    ['one with a big integer', { n: 1n }, 'cannot be made into text'],
    ['one whose getter throws', throwing, 'cannot be made into text: "not"'],
    ['one with a date', { at: new Date(0) }, 'an object (Date) is not'],
    ['one with a function', { run: () => {} }, 'a function is not'],
    ['one with a symbol', { as: Symbol('x') }, 'Symbol(x) is not'],
    ['one with NaN', { n: NaN }, 'NaN is not'],
    ['one with a hole', { list: [1, undefined] }, 'undefined is not'],
    ['one that makes its own JSON', { toJSON: () => ({ group: 'x' }) }, 'without a toJSON method'],
    ['a group that is no text', { group: 7 }, 'must have a text as its group, not 7'],
    ['a trace that is no text', { traceparent: {} }, 'must have a text as its traceparent'],
  ])('is refused before anything is sent where it is %s', (_, label, message) => {
    let error: unknown;
    try {
      resolveLockOptions({ label } as object, LOCK_DEFAULTS);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option: 'label', message: expect.stringContaining(message) });
  });

  it('is the only part that enlarges the options of a call', () => {
    const plain = resolveLockOptions({ waitMs: 0 }, LOCK_DEFAULTS);
    expect(plain).not.toHaveProperty('label');
    expect(resolveLockOptions({ waitMs: 0, label: { group: 'a' } }, LOCK_DEFAULTS)).toEqual({
      ...plain,
      label: '{"group":"a"}',
    });
  });
});

describe('a label in Redis', () => {
  it('is read as it was written', () => {
    const label = { group: 'Orders.pay', traceparent: TRACEPARENT, n: [1, { a: null }] };
    expect(readLabel(encodeLabel(label))).toEqual({ label });
    expect(readLabel(undefined)).toEqual({});
    expect(readLabel('')).toEqual({});
    expect(readLabel(HANDED_ON)).toEqual({ isHandedOn: true });
  });

  it.each([
    ['text', '{no json'],
    ['a list', '[1]'],
    ['a number', '7'],
    ['null', 'null'],
    ['too much of it', JSON.stringify({ text: 'x'.repeat(250) })],
    ['too many bytes of it', JSON.stringify({ text: 'é'.repeat(130) })],
    ['a nest', '{"a":'.repeat(60)],
  ])('counts as none if another program has written %s', (_, text) => {
    expect(readLabel(text).label).toBeUndefined();
    expect(readLabel(text)).toEqual({});
  });

  it('cannot add a prototype, or a group that is no text', () => {
    const label = readLabel('{"__proto__":{"isAdmin":true},"a":{"__proto__":{"b":1}},"group":{"x":1},"site":7}').label!;
    expect(Object.getPrototypeOf(label)).toBe(Object.prototype);
    expect(JSON.stringify(label)).toBe('{"a":{}}');
    expect('isAdmin' in { ...label }).toBe(false);
  });
});

describe('a label in a message', () => {
  it('has the work first, then details that help to find it', () => {
    expect(describeLabel(undefined)).toBe('');
    expect(describeLabel({ request: '7f3a', group: 'Orders.pay' })).toBe(' (Orders.pay, request 7f3a)');
    expect(describeLabel({ site: 'src/orders.ts:12:3' })).toBe(' (src/orders.ts:12:3)');
    expect(describeLabel({ group: 'Orders.pay', traceparent: TRACEPARENT })).toBe(
      ' (Orders.pay, trace 4bf92f3577b34da6a3ce929d0e0e4736)',
    );
    expect(describeLabel({ traceparent: 'nothing of the kind', of: { a: 1 } })).toBe('');
  });

  it.each([
    ['control characters', '\u001b[31mred\u0007\n2026 ERROR'],
    ['direction marks', 'abc\u202egnp.exe\u2066'],
    ['markup', '<img src=x onerror=alert(1)>'],
    ['emoji', '👩‍👩‍👧‍👦'.repeat(9)],
  ])('shows %s escaped and cut', (_, hostile) => {
    const text = describeLabel({ group: hostile, [hostile]: hostile, b: hostile, c: hostile, d: hostile, e: hostile });
    // eslint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    expect(text.length).toBeLessThan(800);
    expect(text.match(/"/g)!.length).toBeGreaterThanOrEqual(8);
  });

  it('is next to its holder', () => {
    const holder: Holder = {
      instanceId: 'shop-3',
      isThisProcess: false,
      mode: 'exclusive',
      fencingToken: 32,
      ttlMs: 9_000,
      leaseMs: 10_000,
      heldMs: 12_300,
      depth: 1,
      label: { group: 'Orders.pay', request: '7f3a' },
    };
    const { label: _, ...bare } = holder;
    expect(describeHolders({ holders: [holder], holderCount: 1 })).toBe('shop-3 (Orders.pay, request 7f3a) for 12 s');
    expect(describeHolders({ holders: [{ ...bare, isHandedOn: true }], holderCount: 1 })).toBe(
      'shop-3 (handed on inside that process) for 12 s',
    );
    expect(describeHolders({ holders: [{ ...holder, isThisProcess: true }], holderCount: 1 })).toBe(
      'another call of this process (Orders.pay, request 7f3a) for 12 s',
    );
    expect(describeHolders({ holders: [bare], holderCount: 1 })).toBe('shop-3 for 12 s');
  });
});
