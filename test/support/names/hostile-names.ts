import fc from 'fast-check';
import { decodeResource, encodeResource } from '../../../lib/redis/keys.js';

/** Names that went wrong somewhere, or that would: tried each time, whatever is drawn. */
export const HOSTILE_NAMES: readonly string[] = [
  'plain',
  'Plain',
  'with space',
  ' ',
  'a:b',
  'a:b:waiters',
  'a}:waiters',
  '{a}',
  'a',
  '}{',
  '{}',
  '%7B',
  '%257B',
  '{',
  '%',
  'new\nline',
  'new\r\nline',
  'nul\0byte',
  'nul',
  '\u007f',
  'emoji 🔒',
  'e\u0301',
  '\u00e9',
  '__proto__',
  'constructor',
  'fence',
  'inbox:x',
  'undefined',
  '*',
  '"quoted\'',
  '\u2028',
  'ü'.repeat(256), // 512 bytes
  'x'.repeat(511),
  'x'.repeat(512),
];

/** Texts with a special meaning in our own keys, patterns of SCAN, Lua, JavaScript, and terminals. */
const PIECES = [
  ['{', '}', '{}', '}{', '{{', '}}', '}:', ':{'],
  ['%', '%7', '%7B', '%7b', '%7D', '%25', '%257B', '%00', '%0A', '%7F', '%c3%a9', 'B', 'D', '2', '5', '7', '0'],
  [':', ':waiters', ':done:', ':done:v1', ':tick:', ':tick:1', 'fence', ':fence', 'inbox:', ':inbox:x/y'],
  ['lock', 'lock:', 'lock:{', 'cron:', 'leader:', ' ', '/', '*', '?', '[a-z]', '[^', ']', '\\', '"', "'", '$', '`'],
  ['\0', '\n', '\r\n', '\t', '\u001b[2J', '\u007f', '\u0085', '\u2028', '\ufeff', '\ufffd', '\uffff'],
  ['\u202e', '\u200f', 'שלום', 'é', 'e\u0301', 'Å', 'A\u030a', '\u212b', 'ﬁ', 'fi', 'İ', 'i\u0307', 'ß'],
  ['🔒', '👩\u200d👧', '🇩🇪', '\u{10ffff}', '\u200b', '__proto__', 'constructor', 'a', 'A'],
].flat();

const ofPieces = fc.string({ unit: fc.constantFrom(...PIECES), maxLength: 8 });
const SURROGATES = 0x800;
/** Every character of Unicode. The `binary` unit of fast-check has them, too, and takes most of a second to prepare. */
export const anyCharacter = fc
  .nat(0x10ffff - SURROGATES)
  .map((code) => String.fromCodePoint(code < 0xd800 ? code : code + SURROGATES));
const ofUnicode = fc.string({ unit: anyCharacter, maxLength: 12 });
const base = fc.oneof({ weight: 6, arbitrary: ofPieces }, { weight: 1, arbitrary: ofUnicode });

/** At the limit of 512 bytes, a little below and above it, by characters of one to four bytes. */
const atTheLimit = fc
  .record({
    start: ofPieces,
    filler: fc.constantFrom('x', '%', '{', 'ü', '€', '🔒'),
    bytes: fc.integer({ min: 506, max: 518 }),
  })
  .map(({ start, filler, bytes }) => {
    const room = Math.max(0, bytes - Buffer.byteLength(start));
    const size = Buffer.byteLength(filler);
    return start + filler.repeat(Math.floor(room / size)) + 'x'.repeat(room % size);
  });

/** Cut between the halves of a character, or with one half put in. */
const broken = fc
  .record({ before: ofPieces, half: fc.constantFrom('\ud800', '\udbff', '\udc00', '\udfff'), after: ofPieces })
  .map(({ before, half, after }) => before + half + after);

/** Any name of a resource, including ones that must be refused. */
export const hostileName: fc.Arbitrary<string> = fc.oneof(
  { weight: 20, arbitrary: base },
  { weight: 2, arbitrary: atTheLimit },
  { weight: 1, arbitrary: broken },
);

/** Names that are made from one another, so that they meet wherever names can meet. */
export const relatedNames: fc.Arbitrary<string[]> = fc
  .record({ name: hostileName, other: base, cut: fc.nat({ max: 20 }) })
  .map(({ name, other, cut }) => {
    const halved = name.slice(0, cut);
    const made = [name, encodeResource(name), decodeResource(name), name + other, other + name, halved];
    made.push(name.normalize('NFC'), name.normalize('NFD'), name.toUpperCase(), `${name}}:waiters`, `cron:${name}`);
    made.push(`leader:${name}`);
    return [...new Set(made)];
  });

/** A valid `keyPrefix` of a module, made of the same letters as our keys. */
export const keyPrefix: fc.Arbitrary<string> = fc.string({
  unit: fc.constantFrom(
    'lock',
    ':',
    'fence',
    'inbox',
    'waiters',
    'tick',
    '%7B',
    '%',
    'a',
    'é',
    '🔒',
    '*',
    '?',
    '[',
    '\\',
    '/',
  ),
  minLength: 1,
  maxLength: 6,
});

/**
 * The `keyPrefix` of an ioredis client, which precedes ours and may be any text, even a hash tag. Only an empty tag,
 * `{}`, would split the keys of one resource, so it is useless.
 */
export const outerKeyPrefix: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  {
    weight: 2,
    arbitrary: fc
      .string({ unit: fc.constantFrom('app', ':', '{', '}', '{app}', '*', '[', ' ', '\n', '%', 'é'), maxLength: 5 })
      .filter((prefix) => !/^[^{]*\{\}/.test(prefix)),
  },
);

/** Returns true if Redis can distinguish it from every other name, judging by its encoding and not by our own check. */
export function canBeName(name: string): boolean {
  const bytes = Buffer.from(name);
  return bytes.length >= 1 && bytes.length <= 512 && bytes.toString() === name;
}
