import { InvalidLockOptionsError, InvalidResourceError, type LockError } from '../../../lib/kernel/api/errors.js';
import { GROUP } from '../../../lib/kernel/api/resource.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { rejection } from '../../support/expect/eventually.js';
import { BROKEN_TEXTS, fitting, HOSTILE_TEXTS, textsIn, unsafeIn } from '../../support/expect/hostile-texts.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

const OTHER = '_other';

describe.each(Object.entries(HOSTILE_TEXTS))('%s as names', (_what, text) => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  /** A label of this text that has its 256 bytes at most. */
  const label = { group: fitting(text, 20), who: fitting(text, 20), [fitting(text, 20)]: fitting(text, 20) };

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('are shown escaped by errors, and are the same names for all else', async () => {
    const held = await b.locks.acquire(text, { label });
    expect(held.resource).toBe(text);
    const given = { group: [text] as never };
    const waiting = rejection<LockError>(a.locks.acquire(text, { waitMs: 2_000 }));
    await world.clock.advance(2_000);
    const errors = [
      await waiting,
      await rejection<LockError>(a.locks.acquire(text, { waitMs: 0, maxWaiters: 0 })),
      await rejection<LockError>(a.locks.acquire(text, { signal: AbortSignal.abort(new Error(text)) })),
      await rejection<LockError>(a.locks.acquire(text, { [text]: 1 } as never)),
      await rejection<LockError>(a.locks.acquire(text, { group: `${text}<` })),
      await rejection<LockError>(a.locks.acquire(text, { label: given })),
      await rejection<LockError>(a.locks.acquire(`cron:${text}`.slice(0, 100))),
    ];
    a.store.all(() => Promise.reject(new LockStoreError('refused', text)));
    errors.push(await rejection<LockError>(a.locks.acquire(text)));
    errors.push(await rejection<LockError>(a.locks.operators.explain(text)));
    a.store.all(() => Promise.reject(new Error(text)));
    errors.push(await rejection<LockError>(a.locks.operators.inspect(text)));
    for (const error of errors) {
      expect([error.code, unsafeIn(error.message)]).toEqual([error.code, undefined]);
      expect(error.message.length).toBeLessThan(3_000);
    }
    await held.release();
  });

  it('are shown escaped by explain() and contention(), and bounded where they are counted', async () => {
    a.locks.operators.contention();
    const held = await b.locks.acquire(text, { label });
    const waiting = a.locks.acquire(text, { waitMs: 60_000 });
    await world.clock.advance(3_000);
    const { text: sentences, ...explained } = await a.locks.operators.explain(text);
    for (const line of sentences.split('\n')) expect(unsafeIn(line)).toBeUndefined();
    expect(explained.state.resource).toBe(text);
    await held.release();
    await settle();
    await (await waiting).release();
    const contention = a.locks.operators.contention();
    expect(contention.blockers).toHaveLength(1);
    for (const shown of textsIn(contention)) expect(unsafeIn(shown)).toBeUndefined();
    for (const { group } of contention.groups) expect(group).toMatch(GROUP);
  });
});

it.each(Object.entries(BROKEN_TEXTS))('%s is no name, and is shown escaped', async (_, text) => {
  const { locks } = new LockWorld().instance('a');
  const error = await rejection(locks.acquire(text));
  expect(error).toBeInstanceOf(InvalidResourceError);
  expect(unsafeIn(error.message)).toBeUndefined();
  const lease = await locks.acquire('stock', { label: { who: text } });
  const { text: sentences } = await locks.operators.explain('stock');
  for (const line of sentences.split('\n')) expect(unsafeIn(line)).toBeUndefined();
  await lease.release();
});

const hasNoText: unknown = Object.create(null);
const readsBadly: unknown = Object.defineProperties({}, { constructor: { get: fail }, message: { get: fail } });

function fail(): never {
  throw new Error('no');
}

describe('a group function', () => {
  it.each<[string, () => unknown]>([
    ['throws', fail],
    ...[hasNoText, readsBadly, Symbol('x'), undefined].map((thrown: unknown): [string, () => unknown] => [
      'throws what is no error',
      () => {
        throw thrown;
      },
    ]),
    ['returns nothing', () => undefined],
    ['returns an object', () => ({ toString: fail })],
    ['returns what cannot be read', () => readsBadly],
    ['rejects', () => Promise.reject(new Error('no'))],
    ['returns a long text', () => 'x'.repeat(101)],
    ['returns an empty text', () => ''],
    ...Object.entries(HOSTILE_TEXTS)
      .filter(([, text]) => !GROUP.test(text))
      .map(([what, text]): [string, () => unknown] => [`returns ${what}`, () => text]),
    ...Object.entries(BROKEN_TEXTS).map(([what, text]): [string, () => unknown] => [`returns ${what}`, () => text]),
  ])('that %s is _other, and is warned of once', async (_, group) => {
    const lines: string[] = [];
    const { locks, events } = new LockWorld().instance('a', {
      group: group as () => string,
      warn: (line) => lines.push(line),
    });
    for (const resource of ['order:7', 'order:8']) await locks.using(resource, undefined, () => {});
    expect(new Set(events.map((event) => ('group' in event ? event.group : OTHER)))).toEqual(new Set([OTHER]));
    expect(lines).toEqual([expect.stringMatching(/^The module option group (threw|returned) /)]);
    expect(unsafeIn(lines[0]!)).toBeUndefined();
  });
});

describe('a label', () => {
  it.each<[string, () => unknown]>([
    ['is too long', () => ({ who: 'x'.repeat(247) })],
    ['is too long in bytes', () => ({ who: '😀'.repeat(62) })],
    ['is a text', () => 'Orders.pay'],
    ['is a list', () => ['Orders.pay']],
    ['is a date', () => new Date(0)],
    ['has a date', () => ({ at: new Date(0) })],
    ['has a BigInt', () => ({ id: 1n })],
    ['has no number', () => ({ id: NaN })],
    ['has a function', () => ({ id: () => 1 })],
    ['has nothing in a list', () => ({ ids: [undefined] })],
    [
      'refers to itself',
      () =>
        Object.assign(
          {},
          {
            get self() {
              return this;
            },
          },
        ),
    ],
    ['has a toJSON that returns nothing', () => ({ toJSON: () => undefined })],
    [
      'has a toJSON that throws what has no text',
      () => ({
        toJSON: () => {
          throw hasNoText;
        },
      }),
    ],
    [
      'throws what has no text',
      () =>
        Object.defineProperty({}, 'who', {
          enumerable: true,
          get() {
            throw hasNoText;
          },
        }),
    ],
    ['has a group that is no text', () => ({ group: { toString: () => 'x' } })],
  ])('that %s is refused, and nothing is sent', async (_, make) => {
    const { locks, store } = new LockWorld().instance('a');
    const error = await rejection(locks.acquire('stock', { label: make() as never }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option: 'label', message: expect.stringMatching(/label must/) as string });
    expect(unsafeIn(error.message)).toBeUndefined();
    expect(store.commands).toEqual([]);
  });
});
