// node tools/words/count.mjs [pattern]   Counts phrases that read like a translation; with the name of a pattern, lists its places.
// nestjs-cls, BullMQ and Hono have 0 to 0.15 of each per 1,000 words. The limits leave some room.
import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The maximum per 1,000 words. */
export const PATTERNS = [
  {
    name: 'told',
    max: 0.1,
    pattern: /\b(?:am|is|are|was|were|be|been) told\b|\btells? (?:of|a|an|the|each|every|no)\b|\bhears? of\b/gi,
  },
  { name: 'says', max: 0.1, pattern: /\b(?:says?|said) (?:so|what|which|how|whether|where|who|it|no)\b/gi },
  {
    name: 'where',
    max: 0.3,
    pattern:
      /(?:^|[,.;:(] |\b(?:only|not|set|and|or) )where (?:a|an|the|its?|no|one|there|that|this|they|you|redis|code)\b/gi,
  },
  { name: 'that of', max: 0.2, pattern: /\b(?:that|those) (?:of|that|which|who|with|under|behind)\b/gi },
  { name: 'Of each', max: 0.02, pattern: /(?:^|\. )Of (?:an?|the|it|what|this|those|all|each)\b[^.]{0,80},/g },
  {
    name: 'in vain',
    max: 0.1,
    pattern:
      /\b(?:in vain|(?:stands?|stood) still|(?:goes|go|went) on|(?:is|are|was) over|can(?:not)? be had|is had|anew|meanwhile|comes? to (?:it|pass)|in the way|(?:is|was) away|has gone by)\b/gi,
  },
  { name: 'nobody', max: 0.05, pattern: /\b(?:whoever|somebody|nobody|anybody|everybody)\b/gi },
  {
    name: 'so long',
    max: 0.05,
    pattern: /\b(?:so long|what it is that|as long as that|what there is|what is there)\b/gi,
  },
];
export const MAX_NOUN_CLAUSES = 0.05;
export const MIN_YOU = 8;
const MAX_DOC_WORDS = 50_000;

const filesIn = (folder, ending) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name.split(sep).join('/')}`)
    .toSorted();

const read = (path) => ({ path, text: readFileSync(join(root, path), 'utf8') });

/** The prose of a page: without code, links and comments. */
const proseOf = (text) =>
  text
    .replace(/```[^]*?```|<!--[^]*?-->/g, '')
    .replace(/`[^`\n]*`/g, 'code')
    .replace(/\]\([^)]*\)/g, ']');

/** Keeps code in backticks, where a phrase is a quotation of the same kind. */
const commentsOf = (text) =>
  (text.match(/\/\*\*[^]*?\*\/|(?<=^\s*)\/\/.*$/gm) ?? [])
    .map((comment) => comment.replace(/^\s*\/?\*+\/?|\/\/|@\w+/gm, '').replace(/\*\/$/, ''))
    .join('\n');

/** String literals of three words or more. */
const messagesOf = (text) =>
  (text.match(/'(?:[^'\\\n]|\\.){25,}'|`(?:[^`\\]|\\.){25,}`/g) ?? [])
    .filter((literal) => /\w+ \w+ \w+/.test(literal))
    .join('\n');

/** The first lines of doc comments that start with a capital. */
const headsOf = (text) => [...text.matchAll(/\/\*\*\s*\n?\s*\*?\s*([A-Z][^\n]*)/g)].map(([, line]) => line);

export function isNounClause(head) {
  return /^(?:What|How|Whether|That|Who|Where)\b/.test(head);
}

export function readTexts() {
  const docs = ['README.md', 'AGENTS.md', ...filesIn('docs', '.md')].map(read);
  const sources = filesIn('lib', '.ts')
    .filter((path) => !path.endsWith('.generated.ts'))
    .map(read);
  const take = (extract) => (texts) => texts.map(({ path, text }) => ({ path, text: extract(text) }));
  return {
    docs: take(proseOf)(docs),
    comments: take(commentsOf)(sources),
    messages: take(messagesOf)(sources),
    heads: sources.flatMap(({ text }) => headsOf(text)),
    superlatives: sources.flatMap(({ path, text }) =>
      (text.match(/\b(?:MOST|LONGEST|SHORTEST|SOONEST|LATELY|LATEST|FEWEST)_[A-Z_]+\b/g) ?? []).map(
        (name) => `${path}: ${name}`,
      ),
    ),
  };
}

export function countWords(texts) {
  return texts.reduce((sum, { text }) => sum + (text.match(/\b[A-Za-z][\w'-]*/g)?.length ?? 0), 0);
}

/** Returns the places of a pattern, and their number per 1,000 words. */
export function count(texts, pattern) {
  const places = texts.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line) => (line.match(pattern) ?? []).map(() => `${path}: ${line.trim()}`)),
  );
  return { places, rate: (1_000 * places.length) / Math.max(1, countWords(texts)) };
}

function print(wanted) {
  const texts = readTexts();
  for (const kind of ['docs', 'comments', 'messages']) {
    console.log(`${kind}: ${countWords(texts[kind])} words`);
    for (const { name, max, pattern } of PATTERNS) {
      const { places, rate } = count(texts[kind], pattern);
      console.log(`  ${rate > max ? 'over' : 'ok  '} ${name}: ${rate.toFixed(2)} per 1,000 words, at most ${max}`);
      if (name === wanted) for (const place of places) console.log(`         ${place}`);
    }
  }
  const words = countWords(texts.docs);
  if (words > MAX_DOC_WORDS) console.log(`docs have ${words} words. Aim at ${MAX_DOC_WORDS}.`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) print(process.argv[2]);
