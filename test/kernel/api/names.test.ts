import { execFileSync } from 'node:child_process';
import { inspect } from 'node:util';
import { LockBusyError } from '../../../lib/kernel/api/busy-errors.js';
import { InvalidLockOptionsError, InvalidResourceError, quoteResource } from '../../../lib/kernel/api/errors.js';
import { encodeLabel } from '../../../lib/kernel/api/given-label.js';
import {
  describeHolders,
  describeLabel,
  HANDED_ON,
  type Holder,
  LABEL_BYTES,
  readLabel,
} from '../../../lib/kernel/api/holder.js';
import { LOCK_DEFAULTS, resolveLockOptions } from '../../../lib/kernel/api/lock-options.js';
import { checkResources, jobResource, key } from '../../../lib/kernel/api/resource.js';
import { describeValue } from '../../../lib/kernel/api/validation.js';
import { commandLine } from '../../../lib/kernel/util/quoted.js';
import { rejection } from '../../support/expect/eventually.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { Fleet, type Member } from '../../support/world/singleton-fleet.js';

type Values = (texts: TemplateStringsArray, ...values: unknown[]) => string;
const anyKey = key as Values;

describe('key', () => {
  it('writes clear values like a template string', () => {
    expect(key`order:${7}`).toBe('order:7');
    expect(key`${'eu'}:order:${7n}:${true}`).toBe('eu:order:7:true');
    expect(key`order:${0}:${-1.5}`).toBe('order:0:-1.5');
    expect(key`reports`).toBe('reports');
  });

  it('does not search strings for words, which may be names', () => {
    expect(key`user:${'null'}:${'undefined'}:${'NaN'}`).toBe('user:null:undefined:NaN');
  });

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['NaN', NaN],
    ['Infinity', -Infinity],
    ['""', ''],
    ['an object (Object)', {}],
    ['an object (Date)', new Date()],
    ['an array of 1', ['7']],
    ['a function', () => '7'],
    ['Symbol(7)', Symbol('7')],
  ])('refuses %s, and reports its position', (what, value) => {
    const make = (): string => anyKey`tenant:${'eu'}:order:${value}:lines`;
    expect(make).toThrow(InvalidLockOptionsError);
    expect(make).toThrow(/^Value 2 of a key, after ":order:", is /);
    expect(make).toThrow(what.replace('Infinity', '-Infinity'));
    expect(make).toThrow(expect.objectContaining({ option: 'key' }));
  });

  it('takes a value for missing input of a client, unless no client can send it', () => {
    for (const value of [undefined, null, NaN, Infinity, '', {}, ['7']]) {
      expect(() => anyKey`order:${value}`).toThrow(InvalidResourceError);
    }
    for (const value of [() => '7', Symbol('7')])
      expect(() => anyKey`order:${value}`).not.toThrow(InvalidResourceError);
  });

  it('cuts a long text before the value', () => {
    expect(() => anyKey(raw('x'.repeat(500), ''), undefined)).toThrow(
      /^Value 1 of a key, after "\.\.\.x{37}", is undefined/,
    );
  });

  it('explains its use when it is called like a function', () => {
    const call = anyKey as unknown as (name: unknown) => string;
    expect(() => call('order:7')).toThrow('key is a tag for template strings: key`order:${id}`');
    expect(() => call(undefined)).toThrow(InvalidLockOptionsError);
  });
});

function raw(...texts: string[]): TemplateStringsArray {
  return Object.assign(texts, { raw: texts });
}

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
      'label must have at most 256 bytes as JSON, not 257. Put only the name of the work into the label, ' +
        'and store its data elsewhere.',
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
    ['one that contains itself', cyclic, 'cannot be serialized'],
    ['one with a big integer', { n: 1n }, 'cannot be serialized'],
    ['one whose getter throws', throwing, 'cannot be serialized: "not"'],
    ['one with a date', { at: new Date(0) }, 'an object (Date) is not'],
    ['one with a function', { run: () => {} }, 'a function is not'],
    ['one with a symbol', { as: Symbol('x') }, 'Symbol(x) is not'],
    ['one with NaN', { n: NaN }, 'NaN is not'],
    ['one with a hole', { list: [1, undefined] }, 'undefined is not'],
    ['one that makes its own JSON', { toJSON: () => ({ group: 'x' }) }, 'without a toJSON method'],
    ['a group that is no text', { group: 7 }, 'must have a string as its group, not 7'],
    ['a trace that is no text', { traceparent: {} }, 'must have a string as its traceparent'],
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
      'shop-3 (passed on inside that process) for 12 s',
    );
    expect(describeHolders({ holders: [{ ...holder, isThisProcess: true }], holderCount: 1 })).toBe(
      'another call of this process (Orders.pay, request 7f3a) for 12 s',
    );
    expect(describeHolders({ holders: [bare], holderCount: 1 })).toBe('shop-3 for 12 s');
  });
});

const RUN = 'cron:report';
const LEADER = 'leader:mailer';

const WAYS: [string, (instance: Instance, name: string) => unknown][] = [
  ['acquire', ({ locks }, name) => locks.acquire(name)],
  ['acquire of several', ({ locks }, name) => locks.acquire(['a', name])],
  ['tryAcquire', ({ locks }, name) => locks.tryAcquire(name)],
  ['using', ({ locks }, name) => locks.using(name, undefined, () => 'used')],
  ['semaphore', ({ locks }, name) => locks.semaphore(name, { permits: 1 })],
  ['campaign', ({ locks }, name) => locks.campaign(name)],
];

async function expectRefused(instance: Instance, take: () => unknown, owner: string): Promise<void> {
  const taken = (async () => take())();
  await expect(taken).rejects.toBeInstanceOf(InvalidResourceError);
  await expect(taken).rejects.toThrow(owner);
  expect(instance.store.commands).toHaveLength(0);
}

describe("the name of a job's run, which may come from a URL", () => {
  let fleet: Fleet;
  let anna: Member;

  beforeEach(() => {
    fleet = new Fleet();
    anna = fleet.member('anna');
  });

  it.each(WAYS)('cannot be taken by another lock: %s', async (_, take) => {
    const { instance } = anna;
    await expectRefused(instance, () => take(instance, RUN), '"cron:" belong to the runs of singleton jobs');
    anna.fire('09:00');
    await fleet.clock.advance(100);
    expect(fleet.runs).toHaveLength(1);
  });

  it('identifies the run for operators: they see it, list it, and end it', async () => {
    const { operators } = anna.instance.locks;
    anna.fire('09:00', 60_000);
    await fleet.clock.advance(100);
    const seen = await operators.inspect(RUN);
    expect(seen.holders).toMatchObject([{ instanceId: 'anna' }]);
    expect((await operators.list({ prefix: 'cron:' })).map(({ resource }) => resource)).toEqual([RUN]);
    const { fencingToken } = seen.holders[0]!;
    expect(await operators.forceRelease(RUN, { fencingToken })).toBe(true);
  });
});

describe('the name of the lock of a leader, which may come from a URL', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it.each(WAYS)('cannot be taken by another lock: %s', async (_, take) => {
    await expectRefused(a, () => take(a, LEADER), 'names that begin with "leader:" belong to leaderships');
    const leader = a.locks.campaign('mailer');
    await settle();
    expect(leader.isLeader()).toBe(true);
  });

  it('identifies the leader for operators: they see it, list it, and end it', async () => {
    const { operators } = a.locks;
    const term = await a.locks.campaign('mailer').whenElected();
    const { fencingToken } = term;
    expect((await operators.inspect(LEADER)).holders).toMatchObject([{ instanceId: 'a', fencingToken }]);
    expect((await operators.list({ prefix: 'leader:' })).map(({ resource }) => resource)).toEqual([LEADER]);
    expect((await operators.inspect('mailer')).holders).toEqual([]);
    expect(await operators.forceRelease(LEADER, { fencingToken })).toBe(true);
    expect(await term.verify()).toBe(false);
  });
});

describe('the longest name', () => {
  it('of a leadership, or a job, leaves room for its prefix; a longer one is refused by its own name', async () => {
    const { instance } = new Fleet().member('anna');
    const long = 'ü'.repeat(252);
    await instance.locks.campaign(`${long}x`).whenElected();
    const taken = (): unknown => instance.locks.campaign(`${long}xx`);
    expect(taken).toThrow(InvalidLockOptionsError);
    expect(taken).toThrow(
      /campaign cannot be used: "ü+\.\.\." has 506 bytes, more than the 505 that the prefix "leader:" leaves/,
    );
    expect(jobResource('x'.repeat(507))).toHaveLength(512);
    expect(() => jobResource('x'.repeat(508))).toThrow(
      'has 508 bytes, more than the 507 that the prefix "cron:" leaves',
    );
  });
});

describe('resource names', () => {
  it.each([
    ['a'],
    ['order:42'],
    ['cron'],
    ['Cron:nightly'],
    [' cron:nightly'],
    ['leader'],
    ['Leader:mailer'],
    ['{a}:b'],
    ['a b\nc\0d'],
    ['🔒'],
    ['__proto__'],
    ['undefined'],
    ['%7B'],
    ['x'.repeat(512)],
    ['é'.repeat(256)],
    ['🔒'.repeat(128)],
  ])('may be %j', (name) => {
    expect(checkResources(name, 'acquire')).toEqual([name]);
  });

  it.each<[unknown, RegExp]>([
    ['', /the name is empty/],
    ['x'.repeat(513), /513 bytes, more than 512/],
    ['é'.repeat(257), /514 bytes/],
    [`${'🔒'.repeat(128)}x`, /513 bytes/],
    ['\ud800', /lone surrogate/],
    ['a\udc00b', /lone surrogate/],
    [undefined, /undefined is not a string/],
    [null, /null is not a string/],
    [42, /42 is not a string/],
    [{ id: 1 }, /an object \(Object\) is not a string/],
    [() => 'x', /a function is not a string/],
    [[], /the array is empty/],
    [['a', undefined], /undefined is not a string/],
    [['a', ['b']], /an array of 1 is not a string/],
    [['a', ''], /the name is empty/],
    [[undefined], /undefined is not a string/],
    [Array.of<string>().concat('a', Array(2)), /undefined is not a string/],
    [Array(3), /undefined is not a string/],
    ['cron:nightly', /names that begin with "cron:" belong to the runs of singleton jobs/],
    ['cron:', /begin with "cron:"/],
    [['a', 'cron:nightly'], /begin with "cron:"/],
    ['leader:mailer', /names that begin with "leader:" belong to leaderships/],
    [['a', 'leader:mailer'], /begin with "leader:"/],
  ])('may not be %p', (resource, why) => {
    const check = () => checkResources(resource, 'OrderService.pay');
    expect(check).toThrow(InvalidLockOptionsError);
    expect(check).toThrow(why);
    expect(check).toThrow(/The resource given to OrderService\.pay cannot be used/);
  });

  it('are sorted by code unit, the same on every machine, and named once', () => {
    expect(checkResources(['b', 'a', 'Z', 'ä', 'b'], 'acquire')).toEqual(['Z', 'a', 'b', 'ä']);
  });

  it("leave the caller's array alone", () => {
    const names = Object.freeze(['b', 'a']);
    expect(checkResources(names, 'acquire')).toEqual(['a', 'b']);
    expect(names).toEqual(['b', 'a']);
  });
});

/** Results of template strings for `undefined`, `null`, `Number('x')` and `{}`. */
const UNCLEAR: [name: string, part: string][] = [
  [`order:${String(undefined)}`, 'undefined'],
  [`${String(undefined)}:order`, 'undefined'],
  [`tenant/${String(null)}/order`, 'null'],
  [`order#${Number('x')}`, 'NaN'],
  [`a|${Number('x')}|b`, 'NaN'],
  ['undefined', 'undefined'],
  ['order:[object Object]', '[object Object]'],
  ['order-[object Promise]', '[object Promise]'],
];
const CLEAR = [
  'order:42',
  'undefined-behaviour',
  'recipe:nan-bread',
  'tag:not-null',
  'order:undefinedX',
  'nullable:x',
  'NULL',
];

describe('a name that a template string makes of a missing value', () => {
  const world = new LockWorld();

  it.each(UNCLEAR)('%j is refused before anything is sent', async (name, part) => {
    const { locks, store } = world.instance('a');
    const message = `"${part}" in "${name}" comes from a missing value in a template string`;
    for (const call of [
      () => locks.acquire(name),
      () => locks.acquire(['stock', name]),
      () => locks.tryAcquire(name),
      () => locks.using(name, undefined, () => 'done'),
      () => locks.tryUsing(name, () => 'done'),
      async () => locks.semaphore(name, { permits: 2 }),
    ]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(InvalidResourceError);
      expect(error.message).toContain(message);
      expect(error.message).toContain("key`order:${id}`. If the name is right, set suspiciousNames: 'allow'");
    }
    expect(store.commands).toEqual([]);
  });

  it.each(UNCLEAR)('%j is a normal name if the module allows it', async (name) => {
    const { locks } = world.instance('a', { suspiciousNames: 'allow' });
    await expect(locks.using(name, undefined, () => 'done')).resolves.toBe('done');
  });

  it.each(CLEAR)('does not include %j', async (name) => {
    const { locks } = world.instance('a');
    await expect(locks.using(name, undefined, () => 'done')).resolves.toBe('done');
  });

  it('does not keep an operator from inspecting such a lock', async () => {
    const { locks } = world.instance('a');
    await expect(locks.inspect('order:undefined')).resolves.toMatchObject({ holders: [] });
  });
});

/** Characters that a terminal executes, and that reverse or hide the text around them. */
const HOSTILE = [
  '\u0000',
  '\u001b',
  '\u007f',
  '\u0085',
  '\u009b',
  '\u061c',
  '\u200b',
  '\u200e',
  '\u200f',
  '\u2028',
  '\u2029',
  '\u202a',
  '\u202e',
  '\u2066',
  '\u2067',
  '\u2068',
  '\u2069',
  '\ufeff',
];
const codeOf = (character: string): string => `U+${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

describe('a name with a character that a terminal executes, or that hides others', () => {
  it.each(HOSTILE.map((character) => [codeOf(character), character]))(
    'is shown with an escape in place of it: %s',
    async (_code, character) => {
      const name = `order:${character}7`;
      const { locks } = new LockWorld().instance('a');
      const lease = await locks.acquire(name);
      await settle();
      const texts = [
        quoteResource(name),
        quoteResource([name, 'other']),
        describeValue(name),
        new LockBusyError(name, { attempts: 1, retryAfterMs: 0 }).message,
        inspect(lease),
        inspect({ lease }),
      ];
      for (const text of texts) {
        expect(text).not.toContain(character);
        expect(text).toMatch(/order:\\(u[0-9a-f]{4}|x[0-9A-F]{2})7/);
      }
      await lease.release();
    },
  );

  it('remains unique, and other names are shown as they are', async () => {
    const { locks } = new LockWorld().instance('a');
    const lease = await locks.acquire('a\u202eb');
    expect(lease.resource).toBe('a\u202eb');
    expect(JSON.parse(quoteResource('a\u202e\u009bb'))).toBe('a\u202e\u009bb');
    for (const name of ['order:7', 'é 🔒 한국어', 'שלום', 'ن\u200cم', '👩\u200d💻', '"quoted\\"']) {
      expect(quoteResource(name)).toBe(JSON.stringify(name));
    }
  });

  it('is cut if it is long', () => {
    expect(quoteResource('x'.repeat(81))).toBe(`"${'x'.repeat(77)}..."`);
    expect(describeValue('x'.repeat(61))).toBe(`"${'x'.repeat(57)}..."`);
  });
});

describe('a name in a command line to paste', () => {
  it.each([
    ['order:7', 'order:7 --yes'],
    ['user@example.org/a+b-c', 'user@example.org/a+b-c --yes'],
    ['a b', "'a b' --yes"],
    ['order:7$(id)', "'order:7$(id)' --yes"],
    ["it's `id`", `'it'\\''s \`id\`' --yes`],
    ['~', "'~' --yes"],
    ['=ls', "'=ls' --yes"],
    ['-f', '--yes -- -f'],
    ['é 🔒', "'é 🔒' --yes"],
    ["a\nb'\\!\u202ec", String.raw`$'a\012b\047\134!\342\200\256c' --yes`],
  ])('%j is one argument: %s', (name, args) => {
    const line = commandLine('release', name, '--yes');
    expect(line).toBe(`npx nestjs-redis-lock release ${args}`);
    const printed = execFileSync('bash', ['-c', `npx() { printf '%s\\0' "$@"; }; ${line}`], { encoding: 'utf8' });
    expect(printed.split('\0')).toContain(name);
  });
});
