// Started by scripts/docs.mjs, which installs the packages of this folder.
//
// npm run docs              builds the site in site/dist and checks every link of it
// npm run docs -- --serve   then serves it
// npm run docs:dev          serves the pages while they are being written
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { serve } from 'vitepress';
import { checkLinks } from './check-links.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, 'tools/docs');
const SITE = join(ROOT, 'site/dist');
const require = createRequire(import.meta.url);
const TYPEDOC = join(dirname(require.resolve('typedoc/package.json')), 'bin/typedoc');
const VITEPRESS = join(dirname(require.resolve('vitepress/package.json')), 'bin/vitepress.js');
/** Both make much that is soon of no use. With the room that Node has for that, a fifth of their time is spent on looking what is. */
const ROOM_FOR_NEW = '--max-semi-space-size=128';

const { values } = parseArgs({
  options: {
    dev: { type: 'boolean', default: false },
    serve: { type: 'boolean', default: false },
    port: { type: 'string', default: '5173' },
  },
});

await run(TYPEDOC, '--options', join(FOLDER, 'typedoc.mjs'));
if (values.dev) await run(VITEPRESS, 'dev', FOLDER, '--port', values.port);
else {
  await run(VITEPRESS, 'build', FOLDER);
  const { followed, broken } = checkLinks(SITE, process.env.DOCS_BASE);
  if (broken.length > 0) {
    console.error(`These links lead nowhere:\n${broken.map((link) => `  ${link}`).join('\n')}`);
    process.exit(1);
  }
  console.log(`All ${followed} links lead somewhere. The site is in ${SITE}`);
  if (values.serve) await serve({ root: FOLDER, port: Number(values.port) });
}

/** Ends this program if the other one fails, which has printed the reason. */
async function run(program, ...args) {
  const child = spawn(process.execPath, [ROOM_FOR_NEW, program, ...args], { cwd: ROOT, stdio: 'inherit' });
  const code = await new Promise((resolve) => child.on('exit', resolve));
  if (code !== 0) process.exit(code ?? 1);
}
