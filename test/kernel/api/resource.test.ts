import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { checkResources } from '../../../lib/kernel/api/resource.js';

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
