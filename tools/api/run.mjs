// npm run api   writes api.md, the public names of the package, and tools/api/shapes.md, what their declarations name
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { apiPages } from './pages.mjs';

const root = new URL('../../', import.meta.url);

for (const [name, text] of Object.entries(await apiPages())) {
  const path = fileURLToPath(new URL(name, root));
  const isSame = readFileSync(path, 'utf8') === text;
  if (!isSame) writeFileSync(path, text);
  console.log(isSame ? `${name} was up to date.` : `Updated ${name}: add what has changed for users to CHANGELOG.md.`);
}
