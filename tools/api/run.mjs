// npm run api             writes api.md: the public names of the package, with their declarations
// npm run api -- --check  fails when api.md is stale
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import prettier from 'prettier';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { reportApi } from './report.mjs';

const INTRODUCTION = `# Public names

Everything that users of this package can import, generated from \`lib/\` by \`npm run api\`. A change here is a change for users: add it to CHANGELOG.md.
Comments, private members, and constructors that only the package itself can call are left out.
`;

const root = fileURLToPath(new URL('../..', import.meta.url));
const path = join(root, 'api.md');

const names = reportApi({
  entries: Object.fromEntries(ENTRY_POINTS.map(({ subpath, source }) => [subpath, join(root, source)])),
  tsconfig: join(root, 'tsconfig.esm.json'),
});
const options = await prettier.resolveConfig(path);
const report = await prettier.format(`${INTRODUCTION}\n${names}`, { ...options, filepath: path });

if (!process.argv.includes('--check')) writeFileSync(path, report);
else if (!existsSync(path) || readFileSync(path, 'utf8') !== report) {
  console.error('api.md is stale. Run `npm run api`, and check that each difference is meant.');
  process.exitCode = 1;
}
