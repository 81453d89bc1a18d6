/**
 * Characters that a terminal executes (C1 controls), or that reverse or hide the text beside them (direction marks,
 * separators, zero-width spaces, tags). C0 controls are escaped before this. Joiners stay: some scripts and emoji need them.
 */
const UNSAFE =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Makes a user's text safe for a message or a log: quoted, escaped, and shortened if it is long. */
export function quote(text: string, longest = 80): string {
  // Not in the middle of a character.
  const cut = text.length > longest ? `${text.slice(0, longest - 3).replace(/[\ud800-\udbff]$/, '')}...` : text;
  return escapeUnsafe(JSON.stringify(cut));
}

/** The characters of instance ids, groups and most names. */
const PLAIN = /^[\w.:@-]{1,100}$/;

/** Returns a name as it is if that is safe in a message, otherwise as a {@link quote}. */
export function plainOrQuoted(name: string): string {
  return PLAIN.test(name) ? name : quote(name);
}

/** No shell gives a meaning to any of these characters. */
const SHELL_PLAIN = /^[\w.:@/+-]+$/;

/** A call of our command line, to paste into a shell: whatever the name has in it stays one argument, and runs nothing. */
export function commandLine(command: string, name: string, ...options: readonly string[]): string {
  const word = shellWord(name);
  const args = name.startsWith('-') ? [...options, '--', word] : [word, ...options];
  return ['npx nestjs-redis-lock', command, ...args].join(' ');
}

function shellWord(text: string): string {
  if (SHELL_PLAIN.test(text)) return text;
  const isVisible = escapeText(text) === text;
  if (isVisible) return `'${text.replaceAll("'", String.raw`'\''`)}'`;
  // As bytes in octal, which bash, zsh, ksh and POSIX 2024 read alike.
  const bytes = (character: string): string =>
    Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  return `$'${text.replace(/[\p{Cc}\p{Cs}'\\]/gu, bytes).replace(UNSAFE, bytes)}'`;
}

/** Names a list for a message or a log: the first few of it, each once, and how many more there are. */
export function quoteSome(texts: readonly string[], most = 5): string {
  const distinct = [...new Set(texts)];
  const named = distinct.slice(0, most).map((text) => quote(text));
  return named.join(', ') + (distinct.length > most ? ` and ${distinct.length - most} more` : '');
}

/** Escapes the unsafe characters of a text that is already quoted. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/** Escapes unsafe characters in a text, which stays unquoted and in one line. */
export function escapeText(text: string): string {
  return text.replace(/\p{Cc}|\p{Cs}/gu, escaped).replace(UNSAFE, escaped);
}

/** The same for a text of several lines, such as a stack. */
export function escapeLines(text: string): string {
  return text.replace(/[^\P{Cc}\n]|\p{Cs}/gu, escaped).replace(UNSAFE, escaped);
}

/**
 * Describes an error of the user's code, which may be anything, in one line. @param isNamed whether the name of an
 * error is in it
 */
export function describeThrown(error: unknown, isNamed = false): string {
  try {
    return escapeText(error instanceof Error && !isNamed ? error.message : String(error));
  } catch {
    return 'a value that cannot be shown';
  }
}

/** A stack in which only the frames begin lines: a message of several lines is one. */
export function describeStack({ message, stack = message }: Error): string {
  return escapeLines(message === '' ? stack : stack.replace(message, () => escapeText(message)));
}

/** Half of a character at a time, as in JSON. */
function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
