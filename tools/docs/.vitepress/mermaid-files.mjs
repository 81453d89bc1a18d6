// Mermaid comes bundled, as files that import each other. The site has them as they are: to read, join and write them once more for
// the browser and for the server takes a quarter of the build.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const PACKAGE = createRequire(import.meta.url).resolve('mermaid/package.json');
const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8'));
const DIST = join(dirname(PACKAGE), 'dist');
const MAIN = 'mermaid.esm.min.mjs';
const CHUNKS = 'chunks/mermaid.esm.min';
/** On the site. Browsers keep what is below assets/ for ever, so another version has another path. */
const FOLDER = `assets/mermaid-${version}`;

/** @returns {import('vite').Plugin} */
export function copyMermaid() {
  let config;
  return {
    name: 'copy-mermaid',
    apply: 'build',
    enforce: 'pre',
    configResolved(resolved) {
      config = resolved;
    },
    resolveId(id) {
      return id === `mermaid/dist/${MAIN}`
        ? { id: `${config.base}${FOLDER}/${MAIN}`, external: 'absolute' }
        : undefined;
    },
    generateBundle() {
      // Diagrams are drawn in the browser alone.
      if (config.build.ssr) return;
      const chunks = readdirSync(join(DIST, CHUNKS)).filter((name) => name.endsWith('.mjs'));
      for (const name of [MAIN, ...chunks.map((chunk) => `${CHUNKS}/${chunk}`)]) {
        this.emitFile({ type: 'asset', fileName: `${FOLDER}/${name}`, source: readFileSync(join(DIST, name)) });
      }
    },
  };
}
