import { key } from '../../../lib/kernel/api/resource.js';
import { InvalidLockOptionsError, InvalidResourceError } from '../../../lib/kernel/api/errors.js';

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
