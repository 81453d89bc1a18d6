import { randomInt } from 'node:crypto';
import { runTypescript } from '../../../test/support/process/run-typescript.js';
import type { FuzzResult } from './fuzz-names.js';

/** The long form has a hundred thousand and more: `npm run chaos`. */
const RUNS = 30_000;

describe('hostile names and options', () => {
  it(`no two names meet, and nothing crashes (${RUNS} of them)`, async () => {
    const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
    console.log(`hostile names: CHAOS_SEED=${seed}`);
    const { code, stdout, stderr } = await runTypescript(new URL('fuzz-process-main.ts', import.meta.url), [
      RUNS,
      seed,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { runs, keys, options, sent, shared, violations } = JSON.parse(stdout) as FuzzResult;
    expect(violations).toEqual([]);
    expect(runs).toBeGreaterThanOrEqual(RUNS);
    // It is about something: names are refused and taken, options too.
    expect(keys.refused).toBeGreaterThan(keys.names / 100);
    expect(options.refused).toBeGreaterThan(options.calls / 10);
    expect(options.refused + options.failed).toBeLessThan(options.calls * 0.9);
    expect(sent.calls).toBeGreaterThan(500);
    expect(shared.names).toBeGreaterThan(300);
    console.log(
      `hostile names: ${keys.names} names with ${keys.keys} keys (${keys.refused} refused), ${options.calls + sent.calls} calls ` +
        `with options (${options.refused + sent.refused} refused), ${shared.names} names held at once`,
    );
  });
});
