import { runUnbundled } from '../../support/process/run-typescript.js';

const PROGRAM = new URL('throwing-subscriber-main.ts', import.meta.url);

describe('a subscriber that throws', () => {
  it('breaks no lock: Node reports each error as uncaught, after the step that published', async () => {
    const { code, stdout } = await runUnbundled(PROGRAM, ['goes on']);
    // Two calls, each with three operations of four messages.
    expect(JSON.parse(stdout)).toEqual({ results: ['first', 'second'], mode: null, uncaught: 24 });
    expect(code).toBe(0);
  });

  it('ends the process, as on every channel of Node, unless the application listens to uncaught errors', async () => {
    const { code, stdout, stderr } = await runUnbundled(PROGRAM);
    expect(code).not.toBe(0);
    expect(stdout).toBe('');
    expect(stderr).toContain('a broken subscriber');
  });
});
