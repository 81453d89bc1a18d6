/**
 * What a terminal obeys (C1 controls) or what turns round or hides the text beside it (marks of direction, separators,
 * spaces of no width). C0 controls are escaped before this. Joiners stay: names in some scripts, and emoji, need them.
 */
const UNSAFE = /[\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * A text that a user may have chosen, as it may stand in a message or a log: quoted, escaped, and cut where it is long.
 */
export function quote(text: string, longest = 80): string {
  const cut = text.length > longest ? `${text.slice(0, longest - 3)}...` : text;
  return escapeUnsafe(JSON.stringify(cut));
}

/** For what is quoted already: with an escape in place of what a terminal would obey, or an eye would not see. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
