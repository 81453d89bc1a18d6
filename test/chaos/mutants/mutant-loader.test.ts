import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { MUTANTS } from './definitions.mjs';
import { type Mutant, mutantNamed, mutate } from './mutate.mjs';

const loader = new URL('mutant-loader.mjs', import.meta.url).href;
const mutant: Mutant = { name: 'm', what: 'is wrong', file: 'a.js', find: 'if (ok)', replace: 'if ($&)' };

/** Runs a script in a process that is the mutant. */
function run(name: string, script: string) {
  const args = ['--import', loader, '--input-type=module', '--eval', script];
  const env = { ...process.env, NODE_OPTIONS: '', CHAOS_MUTANT: name };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8', cwd: process.cwd() });
  return { status, stdout: stdout.trim(), stderr };
}

describe('the text of a mutant', () => {
  it('differs in what was to be found, and in nothing else', () => {
    expect(mutate('a; if (ok) b;', mutant)).toBe('a; if ($&) b;');
  });

  it.each([
    ['nowhere', 'a; b;', '0 times'],
    ['twice', 'if (ok) a; if (ok) b;', '2 times'],
  ])('is refused where what is to be found stands %s', (_, source, times) => {
    expect(() => mutate(source, mutant)).toThrow(times);
  });

  it('is refused where it changes nothing', () => {
    expect(() => mutate('if (ok)', { ...mutant, replace: 'if (ok)' })).toThrow('with itself');
  });

  it.each(MUTANTS)('$name stands once in the file it is for: $what', (defined: Mutant) => {
    const source = readFileSync(new URL(`../../../dist/esm/${defined.file}`, import.meta.url), 'utf8');
    expect(mutate(source, defined)).not.toBe(source);
  });

  it('has a name of its own', () => {
    for (const { name } of MUTANTS) expect(mutantNamed(MUTANTS, name).name).toBe(name);
  });
});

describe('a process that is a mutant', () => {
  const script = `
    await import('nestjs-redis-lock');
    const { CLAIM_TICK } = await import('./dist/esm/redis/scripts/claim-tick.js');
    console.log(JSON.stringify(CLAIM_TICK).includes("redis.call('SET', KEYS[2], owner"));`;

  it('runs the broken text', () => {
    expect(run('claim-forgets-tick', script)).toEqual({ status: 0, stdout: 'false', stderr: '' });
  });

  it('runs what is published where no mutant is named', () => {
    expect(run('', script)).toEqual({ status: 0, stdout: 'true', stderr: '' });
  });

  it('fails at the start where nobody has defined it', () => {
    const { status, stderr } = run('no-such', script);
    expect(status).not.toBe(0);
    expect(stderr).toContain('0 mutants are called "no-such"');
  });

  it('fails at the end where it never loaded the broken file', () => {
    expect(run('claim-forgets-tick', '')).toMatchObject({
      status: 70,
      stderr: expect.stringContaining('claim-tick.js'),
    });
  });
});
