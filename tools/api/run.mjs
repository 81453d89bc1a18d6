// npm run api             writes api.md, the public names of the package, and tools/api/shapes.md, what their declarations name
// npm run api -- --check  fails when one of them is stale
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { formatted } from '../format.mjs';
import { HIDDEN, reportApi } from './report.mjs';

const NAMES = `# Public names

Everything that users of this package can import, generated from \`lib/\` by \`npm run api\`. A change here is a change for users: add it to CHANGELOG.md.
Comments, private members, and constructors that only the package itself can call are left out. What the declarations name without
exporting it is in [shapes.md](tools/api/shapes.md).
`;

const SHAPES = `# Shapes behind the public names

What the declarations in [api.md](../../api.md) name, and nobody can import: parts of options, of results and of errors. Generated from
\`lib/\` by \`npm run api\`. A change here may be one for users, too.
`;

const root = fileURLToPath(new URL('../..', import.meta.url));

const [names, shapes] = reportApi({
  entries: Object.fromEntries(ENTRY_POINTS.map(({ subpath, source }) => [subpath, join(root, source)])),
  tsconfig: join(root, 'tsconfig.esm.json'),
}).split(HIDDEN);
/** A block at a time: the formatter of Markdown leaves code as it is that only stands in a file of declarations. */
const CODE = /(?<=^```ts\n)[^]*?(?=^```$)/gm;

const reports = { 'api.md': `${NAMES}\n${names}`, 'tools/api/shapes.md': `${SHAPES}\n${shapes}` };

for (const [file, text] of Object.entries(reports)) {
  const path = join(root, file);
  const codes = await Promise.all([...text.matchAll(CODE)].map(([code]) => formatted('block.d.ts', code)));
  const report = await formatted(
    path,
    text.replace(CODE, () => codes.shift()),
  );
  if (!process.argv.includes('--check')) writeFileSync(path, report);
  else if (!existsSync(path) || readFileSync(path, 'utf8') !== report) {
    console.error(`${file} is stale. Run \`npm run api\`, and check that each difference is meant.`);
    process.exitCode = 1;
  }
}
