/**
 * Characters that a terminal executes (C1 controls), or that reverse or hide the text beside them (direction marks,
 * separators, zero-width spaces). C0 controls are escaped before this. Joiners stay: some scripts and emoji need them.
 */
const UNSAFE = /[\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Makes a user's text safe for a message or a log: quoted, escaped, and shortened if it is long. */
export function quote(text: string, longest = 80): string {
  const cut = text.length > longest ? `${text.slice(0, longest - 3)}...` : text;
  return escapeUnsafe(JSON.stringify(cut));
}

/** What instance ids, groups and most names are made of. */
const PLAIN = /^[\w.:@-]{1,100}$/;

/** For a message: a name as it is where that is safe, otherwise as a {@link quote}. */
export function plainOrQuoted(name: string): string {
  return PLAIN.test(name) ? name : quote(name);
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

/** Escapes what is unsafe in the lines of a text, such as a stack. It stays readable, and is not quoted. */
export function escapeLines(text: string): string {
  return text.replace(/[^\P{Cc}\n]|\p{Cs}/gu, escaped).replace(UNSAFE, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
