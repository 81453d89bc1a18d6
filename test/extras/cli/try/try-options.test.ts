import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../../../../lib/extras/cli/frame/exit-codes.js';
import { checkTryOptions } from '../../../../lib/extras/cli/try/try.js';

describe('the file of doctor --try --history', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'try-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const check = (history: string): void =>
    checkTryOptions({
      options: { try: 1_000, seed: undefined, history, yes: false },
      terminal: { isInteractive: true } as never,
    });

  it('keeps its contents until the try is confirmed', () => {
    const file = join(folder, 'tried.jsonl');
    writeFileSync(file, 'of the last run');
    check(file);
    expect(readFileSync(file, 'utf8')).toBe('of the last run');
  });

  it('is refused before anything runs if it cannot be written', () => {
    expect(() => check(join(folder, 'missing', 'tried.jsonl'))).toThrow(UsageError);
  });
});
