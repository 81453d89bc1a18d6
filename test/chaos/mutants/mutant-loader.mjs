// `CHAOS_MUTANT=<name> node --import <this file> x.ts`: the process runs a deliberately broken variant of dist/esm (see
// definitions.mjs). Without CHAOS_MUTANT it changes nothing. It fails loudly where the variant would not be the one meant: at
// the start, or with exit code 70 at the end where the broken file was never loaded.
import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import { MUTANTS } from './definitions.mjs';
import { mutantNamed, mutate } from './mutate.mjs';

const name = process.env.CHAOS_MUTANT;

if (name) {
  const mutant = mutantNamed(MUTANTS, name);
  const url = new URL(`../../../dist/esm/${mutant.file}`, import.meta.url);
  const source = mutate(readFileSync(url, 'utf8'), mutant);
  // Hooks run in a thread of their own: by this it tells that the file was loaded.
  const loads = new Int32Array(new SharedArrayBuffer(4));
  register('./mutant-hook.mjs', import.meta.url, { data: { url: url.href, source, loads } });
  process.on('exit', () => {
    if (Atomics.load(loads, 0) > 0) return;
    process.stderr.write(`mutant ${name}: nothing has loaded ${mutant.file} of dist/esm\n`);
    process.exitCode = 70;
  });
}
