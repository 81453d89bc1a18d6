// The contents of api.md and tools/api/shapes.md.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { formatted } from '../format.mjs';
import { HIDDEN, reportApi } from './report.mjs';
import { LIB_FILES } from './source-files.mjs';

const NAMES = `# Public names

Everything that users of this package can import, generated from \`lib/\` by \`npm run api\`. A change here is a change for users: add it to CHANGELOG.md.
Comments, private members, and constructors that only the package itself can call are left out. What the declarations name without
exporting it is in [shapes.md](tools/api/shapes.md).
`;

const SHAPES = `# Shapes behind the public names

What the declarations in [api.md](../../api.md) name, and nobody can import: parts of options, of results and of errors. Generated from
\`lib/\` by \`npm run api\`. A change here may be one for users, too.
`;

/** A block at a time: the formatter of Markdown does not format code that is only valid in a file of declarations. */
const CODE = /(?<=^```ts\n)[^]*?(?=^```$)/gm;

const root = fileURLToPath(new URL('../..', import.meta.url));

/** @returns {Promise<Record<string, string>>} the text of each page, by its path in the repository */
export async function apiPages() {
  const [names, shapes] = reportApi({
    entries: Object.fromEntries(ENTRY_POINTS.map(({ subpath, source }) => [subpath, join(root, source)])),
    tsconfig: join(root, 'tsconfig.esm.json'),
    sourceFiles: LIB_FILES,
  }).split(HIDDEN);
  const texts = { 'api.md': `${NAMES}\n${names}`, 'tools/api/shapes.md': `${SHAPES}\n${shapes}` };
  const pages = Object.entries(texts).map(async ([path, text]) => [
    path,
    await formatted(path, await withFormattedCode(text)),
  ]);
  return Object.fromEntries(await Promise.all(pages));
}

async function withFormattedCode(text) {
  const codes = await Promise.all([...text.matchAll(CODE)].map(([code]) => formatted('block.d.ts', code)));
  return text.replace(CODE, () => codes.shift());
}
