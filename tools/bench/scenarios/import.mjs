import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { median } from '../measure/statistics.mjs';
import { roundsOfOurs, spreadSeries } from './solo.mjs';

const STARTS = 15;
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const NEST = ['reflect-metadata', '@nestjs/common', '@nestjs/core'];
/** The modules that each process imports, one after the other. */
const IMPORTS = {
  Nest: NEST,
  'Nest, ioredis': [...NEST, 'ioredis'],
  'Nest, this package': [...NEST, new URL('../../../dist/esm/index.js', import.meta.url).href],
};
const [ALONE, , TOGETHER] = Object.keys(IMPORTS);

export const scenario = {
  name: 'import',
  title: 'The import of the package',
  how:
    `A process of Node imports Nest, another one Nest and ioredis, another one Nest and this package, which loads ioredis only where a module needs it: in turns, ` +
    `${STARTS} of each in a round. It is the time that the imports take in the process; the median of a round.`,
  metrics: [{ id: 'ms', label: 'ms', digits: 0 }],
  targets: [
    { text: "over Nest's own", of: (values) => values[TOGETHER]?.ms - values[ALONE]?.ms, atMost: 60, unit: ' ms' },
  ],
  async run(bench) {
    const measure = async () => {
      const times = Object.fromEntries(Object.keys(IMPORTS).map((name) => [name, []]));
      for (let start = 0; start < bench.count(STARTS, 1); start++) {
        for (const [name, imports] of Object.entries(IMPORTS)) times[name].push(await importMs(imports));
      }
      return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, { ms: median(all) }]));
    };
    return { rounds: spreadSeries(await roundsOfOurs(bench, 'import', measure)) };
  },
};

async function importMs(specifiers) {
  const program = `
    const from = performance.now();
    for (const specifier of ${JSON.stringify(specifiers)}) await import(specifier);
    console.log(performance.now() - from);
    process.exit();
  `;
  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  return Number(stdout);
}
