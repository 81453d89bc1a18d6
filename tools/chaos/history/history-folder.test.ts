import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, rmSync } from 'node:fs';
import { HistoryFolder, readFolder } from './history-folder.js';

describe('what processes say', () => {
  let folder: HistoryFolder;
  beforeEach(() => {
    folder = new HistoryFolder();
  });
  afterEach(() => folder[Symbol.dispose]());

  const grant = (call: string) => ({ type: 'ok', op: 'acquire', call, tokens: [32], until: 5 }) as const;

  it('is read with the time and the name of who said it', () => {
    folder.logOf('w1').say({ type: 'started' });
    expect(readFolder(folder.path)).toEqual([{ at: expect.any(Number), process: 'w1', type: 'started' }]);
  });

  it('is counted while it grows, each grant once, also where a line is only half there', () => {
    const log = folder.logOf('w1');
    log.say(grant('w1/1'));
    expect(folder.countGrants()).toBe(1);
    const line = JSON.stringify({ at: 1, process: 'w2', ...grant('w2/1') });
    appendFileSync(folder.fileOf('w2'), line.slice(0, 30));
    expect(folder.countGrants()).toBe(1);
    appendFileSync(folder.fileOf('w2'), `${line.slice(30)}\n`);
    log.say({ type: 'fail', op: 'acquire', call: 'w1/2', code: null });
    expect(folder.countGrants()).toBe(2);
  });

  it('is heard while it grows, also where a letter is only half there', () => {
    folder.logOf('w1').say({ type: 'started', at: 1 });
    expect(folder.readSoFar().entries).toHaveLength(1);
    const line = Buffer.from(`${JSON.stringify({ at: 2, process: 'w\u00f6', type: 'started' })}\n`);
    const half = line.indexOf(0xc3) + 1;
    appendFileSync(folder.fileOf('w2'), line.subarray(0, half));
    expect(folder.readSoFar().entries).toHaveLength(1);
    appendFileSync(folder.fileOf('w2'), line.subarray(half));
    expect(folder.readSoFar().entries.map(({ process }) => process)).toEqual(['w1', 'w\u00f6']);
  });

  it('is gone with the process that began it, also where that exits in the middle', () => {
    const loader = new URL('../../../test/support/process/typescript-loader.mjs', import.meta.url).href;
    const script = `
      const { HistoryFolder } = await import(${JSON.stringify(new URL('history-folder.ts', import.meta.url).href)});
      console.log(new HistoryFolder().path);
      process.exit(130);`;
    const args = ['--import', loader, '--input-type=module', '--eval', script];
    const { stdout, status } = spawnSync(process.execPath, args, {
      env: { ...process.env, NODE_OPTIONS: '' },
      encoding: 'utf8',
    });
    expect(status).toBe(130);
    expect(stdout.trim()).toContain('lock-chaos-');
    expect(existsSync(stdout.trim())).toBe(false);
  });

  it('is gone when the folder is', () => {
    folder.logOf('w1').say({ type: 'started' });
    folder[Symbol.dispose]();
    expect(existsSync(folder.path)).toBe(false);
  });

  it('stays where it is kept', () => {
    folder.logOf('w1').say({ type: 'started' });
    folder.keep();
    folder[Symbol.dispose]();
    expect(readFolder(folder.path)).toHaveLength(1);
    rmSync(folder.path, { recursive: true });
  });
});
