import { jest } from '@jest/globals';
import { Stages } from '../../../scripts/ci/stages.mjs';

const NODE = process.execPath;
const says = (text: string) => ['-e', `console.log(${JSON.stringify(text)})`];

describe('the stages of a run', () => {
  let printed: string[];
  let stages: Stages;

  beforeEach(() => {
    printed = [];
    jest.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line));
    jest.spyOn(console, 'error').mockImplementation((line: string) => void printed.push(line));
    stages = new Stages();
  });
  afterEach(() => jest.restoreAllMocks());

  it('print what they said when they have ended, where they run beside others', async () => {
    await Promise.all([
      stages.beside('quick', NODE, says('one')),
      stages.beside('slow', NODE, ['-e', 'console.log("two"); setTimeout(() => console.log("three"), 300)']),
    ]);
    expect(printed).toEqual([
      expect.stringMatching(/^\n=== quick: passed after \d+ s \(\d+ s\)\none\n$/),
      expect.stringMatching(/^\n=== slow: passed after \d+ s \(\d+ s\)\ntwo\nthree\n$/),
    ]);
    expect(stages.failed).toEqual([]);
  });

  it('give way to the others, where they run behind them', async () => {
    await stages.behind('nice', NODE, ['-p', 'require("node:os").getPriority()']);
    const [, priority] = /\n(\d+)\n$/.exec(printed[0]!)!;
    expect(Number(priority)).toBeGreaterThanOrEqual(10);
  });

  it('are stopped where those in front of them have failed, and have not failed themselves', async () => {
    const endless = stages.behind('endless', NODE, ['-e', 'setInterval(() => {}, 1_000)']);
    await stages.beside('bad', NODE, ['-e', 'process.exit(3)']);
    stages.stop();
    await endless;
    expect(stages.failed).toEqual(['bad']);
    expect(stages.summary()).toMatch(/^bad: FAILED \(\d+ s\)\nendless: stopped \(\d+ s\)\nall: FAILED \(\d+ s\)$/);
  });

  it('print again what they said at last, where they failed beside others', async () => {
    const lines = 'for (let line = 1; line <= 100; line += 1) console.log(line);';
    await stages.beside('bad', NODE, ['-e', `${lines} process.exitCode = 3`]);
    await stages.beside('good', NODE, says('fine'));
    expect(stages.summary()).toMatch(
      /^=== bad failed. Its last lines:\n41\n42\n(\d+\n)+100\n\nbad: FAILED \(\d+ s\)\ngood: passed /,
    );
  });

  it('have failed where a command ends with an error, by a signal, or cannot be started', async () => {
    await stages.beside('good', NODE, says('fine'));
    await stages.front('bad', NODE, ['-e', 'process.exit(3)']);
    await stages.behind('killed', NODE, ['-e', 'process.kill(process.pid)']);
    await stages.beside('missing', 'no-such-program', []);
    expect(stages.failed).toEqual(['bad', 'killed', 'missing']);
    expect(stages.summary()).toMatch(
      /^good: passed \(\d+ s\)\nbad: FAILED \(\d+ s\)\nkilled: FAILED \(\d+ s\)\nmissing: FAILED \(\d+ s\)\nall: FAILED \(\d+ s\)$/,
    );
  });
});
