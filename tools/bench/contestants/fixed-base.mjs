// The package as the fastest commit so far built it: see fastest-commit.mjs.
import { pathToFileURL } from 'node:url';
import { connectTo } from './ours.mjs';

const { BENCH_FIXED: entryPoint } = process.env;
if (!entryPoint) throw new Error('BENCH_FIXED is missing: start this with `npm run bench -- --against <commit>`');
const built = await import(pathToFileURL(entryPoint));

/** @param {object} tuning options of `forRoot` */
export function connect(url, tuning = {}) {
  return connectTo(built, url, tuning);
}
