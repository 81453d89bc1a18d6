/** Reads a reply of names and values: a list in RESP2, a map in RESP3. */
export function pairsOf(reply: unknown): Map<string, string> {
  const flat: unknown[] = Array.isArray(reply) ? reply : Object.entries(Object(reply) as object).flat();
  const pairs = new Map<string, string>();
  for (let index = 0; index + 1 < flat.length; index += 2) pairs.set(String(flat[index]), String(flat[index + 1]));
  return pairs;
}

/** Reads the fields of an answer to INFO. */
export function infoFields(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0 && !line.startsWith('#')) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

/** The argument of CONFIG GET for {@link writesBeforeItAnswers}. */
export const FSYNC_SETTINGS = '*appendfsync*';

/** Returns true if each write is in the append-only file, on disk, before it is answered. */
export function writesBeforeItAnswers(settings: ReadonlyMap<string, string>): boolean {
  // Or else nothing reaches the disk while a snapshot is made, or the file is rewritten.
  return settings.get('appendfsync') === 'always' && settings.get('no-appendfsync-on-rewrite') === 'no';
}
