/** Texts that forge a line of a log, a series of a metric or an element of a page. */
export const HOSTILE_TEXTS: Readonly<Record<string, string>> = {
  'control characters': 'a\u0000b\u0007c\u0008d\u007fe\u0085f\u009bg',
  'a terminal sequence': '\u001b[2J\u001b[31mred\u001b]0;title\u0007\u009b1m',
  'a second line': 'a\r\n[Nest] 1  - ERROR [RedisLock] Forged.\n\u2028\u2029\u000b\u000c',
  'turned round': 'a\u202egnp.exe\u202c\u2066b\u2069\u061c\u200f',
  'what is not seen': 'a\u200b\u2060\u00ad\ufeff\u180e\u{e0041}\u{e007f}b',
  HTML: `"><script>alert('x')</script><img src=x onerror=alert(1)>&lt;`,
  'quotes and backslashes': '"\\"\'`\\\\n\\',
  'a series of its own': '"} 1\n# HELP x y\n# TYPE x counter\nx{a="b"} 2\n',
  'templates and commands': '${7*7}{{7*7}}%s%n$(id);`id`\\u0041',
  emoji: '😀'.repeat(128),
  'a family of emoji': '👩\u200d👧'.repeat(46),
  'a prototype': '__proto__',
};

/** Characters that a terminal executes, that reverse or hide text, and that are no text. Line ends, too. */
const UNSAFE =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

/** The first unsafe character of a text, as a code point; nothing for a text that can be printed in one line. */
export function unsafeIn(text: string): string | undefined {
  const [character] = UNSAFE.exec(text) ?? [];
  return character && `U+${character.codePointAt(0)!.toString(16).padStart(4, '0')} in ${JSON.stringify(text)}`;
}

/** All texts in a value, names of properties too. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => [name, ...textsIn(each)]);
}

/** The beginning of a text, whole characters of at most this many bytes. */
export function fitting(text: string, bytes: number): string {
  let cut = '';
  for (const character of text) {
    if (Buffer.byteLength(cut + character) > bytes) break;
    cut += character;
  }
  return cut;
}
