import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { randomInt } from 'node:crypto';

const loader = new URL('../support/typescript-loader.mjs', import.meta.url).href;
const main = fileURLToPath(new URL('main.ts', import.meta.url));
const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
/** Much longer than it takes, on a machine that is very busy. */
const PATIENCE_MS = 400_000;

let run: ChildProcess | undefined;
// Where it takes too long it would go on, with all its processes.
afterAll(() => run?.kill());

it(
  `faults of every kind break no rule (npm run chaos -- --form short --part faults --seed ${seed})`,
  async () => {
    const args = ['--import', loader, main, '--form', 'short', '--part', 'faults', '--seed', String(seed)];
    run = spawn(process.execPath, args, { env: { ...process.env, NODE_OPTIONS: '' } });
    let output = '';
    for (const stream of [run.stdout!, run.stderr!]) stream.on('data', (chunk) => (output += String(chunk)));
    const [code] = (await once(run, 'close')) as [number];
    process.stdout.write(output);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('passed: seed') });
  },
  PATIENCE_MS,
);
