// npm run console   writes lib/extras/console/page/page.generated.ts, what a browser loads of the console, from tools/console/page
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatePage } from './generate.mjs';

writeFileSync(join(import.meta.dirname, '../../lib/extras/console/page/page.generated.ts'), await generatePage());
