import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { publishFile } from '../../support/process/publish-file.mjs';

const FOLDER = new URL('../../../node_modules/.cache/test-programs/', import.meta.url);

/**
 * The program of lock-process-main.ts with the library's previous version (n-1), which shares Redis with it during a
 * deployment. Until there is a release, a commit from before roll calls and from before the record of a job had the
 * reason of its pause. `keep.mjs` rewrites it.
 */
export const EARLIER = unpack();

function unpack(): { readonly commit: string; readonly program: string } {
  const text = brotliDecompressSync(readFileSync(new URL('earlier.mjs.br', import.meta.url))).toString();
  const [, commit] = /^\/\/ nestjs-redis-lock (\w{40})\n/.exec(text)!;
  const program = fileURLToPath(new URL(`earlier-${commit}.mjs`, FOLDER));
  publishFile(program, text);
  return { commit: commit!, program };
}
