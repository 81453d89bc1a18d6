import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomInt } from 'node:crypto';
import { programOf } from '../../../test/support/process/program.js';
import type { Part } from '../options.js';

const main = new URL('../chaos-main.ts', import.meta.url);
/** Much longer than it takes, on a machine that is very busy. */
const PATIENCE_MS = 400_000;

/** The short form of a part, as a test. `CHAOS_SEED` repeats one. */
export function itPasses(part: Part, what: string, lanes = 2): void {
  const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
  let run: ChildProcess | undefined;
  // After a timeout it would keep running, with all its processes.
  afterAll(() => run?.kill());

  it(
    `${what} (npm run chaos -- --form short --part ${part} --seed ${seed})`,
    async () => {
      const args = [
        programOf(main),
        '--form',
        'short',
        '--part',
        part,
        '--seed',
        String(seed),
        '--lanes',
        String(lanes),
      ];
      run = spawn(process.execPath, args, { env: { ...process.env, NODE_OPTIONS: '' } });
      let output = '';
      for (const stream of [run.stdout!, run.stderr!]) stream.on('data', (chunk) => (output += String(chunk)));
      const [code] = (await once(run, 'close')) as [number];
      process.stdout.write(output);
      expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('passed: seed') });
    },
    PATIENCE_MS,
  );
}
