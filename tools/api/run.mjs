// npm run api   writes api.md, the public names of the package, and tools/api/shapes.md, what their declarations name
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { apiPages } from './pages.mjs';

const root = new URL('../../', import.meta.url);

for (const [path, text] of Object.entries(await apiPages())) writeFileSync(fileURLToPath(new URL(path, root)), text);
