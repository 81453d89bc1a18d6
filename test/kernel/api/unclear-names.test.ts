import { InvalidResourceError } from '../../../lib/kernel/api/errors.js';
import { rejection } from '../../support/expect/eventually.js';
import { LockWorld } from '../../support/world/lock-world.js';

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
    const message = `"${part}" in "${name}" is what a template string makes of a missing value`;
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
