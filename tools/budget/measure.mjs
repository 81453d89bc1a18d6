// What lib/ has: files and lines of each room, the types of jobs, and names with two meanings.

/** What oxfmt puts at the start of a line when a file exports a name of its own. */
const EXPORTED =
  /^export (?:declare )?(?:abstract )?(?:async )?(interface|type|class|function|const|enum)\*? ([\w$]+)/gm;
const TYPES = new Set(['interface', 'type', 'class', 'enum']);
/** `JobStore`, `DueTicks` and `RunEnd`, but not `Runner`. */
const OF_A_JOB = /(?:Job|Tick|Run)s?(?![a-z])/;

/**
 * @typedef {{ rooms: Record<string, [files: number, lines: number]>, jobTypes: string[], doubles: string[] }} Measured
 *
 * @param {Map<string, string>} files the text of each file, by its path in lib/
 * @returns {Measured}
 */
export function measure(files) {
  /** @type {Measured['rooms']} */
  const rooms = {};
  /** @type {Map<string, Set<string>>} */
  const places = new Map();
  const jobTypes = new Set();
  for (const [file, text] of files) {
    if (file.endsWith('.generated.ts')) continue;
    const room = (rooms[file.includes('/') ? file.slice(0, file.lastIndexOf('/')) : '.'] ??= [0, 0]);
    room[0]++;
    room[1] += text.split('\n').length - 1;
    for (const [, kind, name] of text.matchAll(EXPORTED)) {
      places.set(name, (places.get(name) ?? new Set()).add(file));
      if (TYPES.has(kind) && OF_A_JOB.test(name)) jobTypes.add(name);
    }
  }
  const doubles = [...places]
    .filter(([, where]) => where.size > 1)
    .map(([name, where]) => `${name} is exported by ${[...where].map((file) => `lib/${file}`).join(' and ')}`);
  return { rooms, jobTypes: [...jobTypes].sort(byName), doubles };
}

/**
 * The order of the file of budgets.
 *
 * @param {string} a
 * @param {string} b
 */
export function byName(a, b) {
  return a < b ? -1 : 1;
}
