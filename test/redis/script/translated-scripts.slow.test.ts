import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assembleAll } from '../../../tools/lua/assemble.mjs';
import { translate } from '../../../tools/lua/translate.mjs';

const LIB = join(import.meta.dirname, '../../../lib');

describe('the .lua files', () => {
  it('are what the memory store runs; if not: npm run lua', async () => {
    const translated = await translate(assembleAll(LIB));
    expect(readFileSync(join(LIB, 'memory/scripts.generated.ts'), 'utf8')).toBe(translated);
  });
});
