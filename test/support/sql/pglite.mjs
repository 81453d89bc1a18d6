// PGlite, the PostgreSQL in the memory of a process, for tests. To make its data folder takes three seconds of the processor, and to
// begin with one that was made before half a second: the first test that wants one keeps it.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import { publishFile } from '../process/publish-file.mjs';

const { version } = JSON.parse(
  readFileSync(
    join(dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite')), '../package.json'),
    'utf8',
  ),
);
const kept = fileURLToPath(new URL(`../../../node_modules/.cache/pglite/${version}.tar`, import.meta.url));

/** @returns {Promise<PGlite>} with nothing in it */
export async function openPglite() {
  return PGlite.create({ loadDataDir: new Blob([readFileSync(await emptyPglite())]) });
}

/** @returns {Promise<string>} the file of a data folder with nothing in it */
export async function emptyPglite() {
  if (!existsSync(kept)) {
    const db = await PGlite.create();
    const data = await db.dumpDataDir('none');
    await db.close();
    publishFile(kept, new Uint8Array(await data.arrayBuffer()));
  }
  return kept;
}
