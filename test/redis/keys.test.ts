import { Keys } from '../../lib/redis/keys.js';
import { fuzzKeys } from '../support/names/key-collisions.js';
import { runs } from '../support/simulation/runs.js';

const plain = (keys: Keys, resource: string): string => `${keys.prefix}:{${resource}}`;

/** Ways to name keys that are not good enough. */
const MUTANTS: [string, (keys: Keys, resource: string) => string][] = [
  ['names as they are', plain],
  ['only closing braces encoded', (keys, name) => plain(keys, name.replaceAll('}', '%7D'))],
  [
    'a percent sign left as it is',
    (keys, name) =>
      plain(
        keys,
        name.replace(/[{}]/g, (brace) => (brace === '{' ? '%7B' : '%7D')),
      ),
  ],
  ['no case', (keys, name) => Keys.prototype.lock.call(keys, name.toLowerCase())],
  ['one form for what looks alike', (keys, name) => Keys.prototype.lock.call(keys, name.normalize('NFC'))],
  ['no hash tag', (keys, name) => Keys.prototype.lock.call(keys, name).replace(/[{}]/g, '')],
  ['cut at 100 characters', (keys, name) => Keys.prototype.lock.call(keys, name.slice(0, 100))],
  ['trimmed', (keys, name) => Keys.prototype.lock.call(keys, name.trim())],
];

describe('keys', () => {
  it('are those of one name each, in one slot of a cluster, and what cannot be a name is refused', () => {
    const { violations, names, refused } = fuzzKeys(runs(3_000), 20_260_101);
    expect(violations).toEqual([]);
    // It is about something.
    expect(refused).toBeGreaterThan(names / 100);
  });

  it.each(MUTANTS)('would be found: %s', (_what, lock) => {
    class Mutant extends Keys {
      override lock(resource: string): string {
        return lock(this, resource);
      }
    }
    expect(fuzzKeys(5_000, 1, (prefix) => new Mutant(prefix)).violations).toHaveLength(1);
  });

  it('leave ordinary names readable', () => {
    expect(new Keys('lock').lock('order:42 é🔒')).toBe('lock:{order:42 é🔒}');
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
