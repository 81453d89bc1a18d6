// npm run lua   writes what is made of the .lua files in lib/: lib/redis/script/scripts.generated.ts, the texts, and
//               lib/memory/scripts.generated.ts, the same in TypeScript
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assembleAll } from './assemble.mjs';
import { generate } from './generate.mjs';
import { translate } from './translate.mjs';

const root = join(import.meta.dirname, '../..');
const scripts = assembleAll(join(root, 'lib'));
writeFileSync(join(root, 'lib/redis/script/scripts.generated.ts'), generate(scripts));
writeFileSync(join(root, 'lib/memory/scripts.generated.ts'), await translate(scripts));
