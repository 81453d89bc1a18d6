// node --import test/support/process/typescript-loader.mjs tools/chaos/names/fuzz-process-main.ts <runs> <seed>
// In a process of its own: the test runner keeps unhandled rejections to itself.
import { fuzzNames } from './fuzz-names.js';

const [runs = '100000', seed = String(Date.now() % 2 ** 31)] = process.argv.slice(2);
console.log(JSON.stringify(await fuzzNames({ runs: Number(runs), seed: Number(seed) })));
