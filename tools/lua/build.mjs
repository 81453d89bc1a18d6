// npm run lua   writes lib/redis/script/scripts.generated.ts from lib/redis/lua
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assembleAll } from './assemble.mjs';
import { generate } from './generate.mjs';

const root = join(import.meta.dirname, '../..');
writeFileSync(join(root, 'lib/redis/script/scripts.generated.ts'), generate(assembleAll(join(root, 'lib/redis/lua'))));
