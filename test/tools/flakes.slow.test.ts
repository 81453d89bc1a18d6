import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { readOptions } from '../../tools/flakes/options.mjs';
import { runningIn, runningTree, signalAll } from '../../tools/flakes/process-tree.mjs';
import { standStill } from '../../tools/flakes/stops.mjs';
import { failuresIn, summaryOf } from '../../tools/flakes/summary.mjs';
import { eventually } from '../support/expect/eventually.js';

describe('the options of npm run flakes', () => {
  it('name the tests behind --', () => {
    expect(
      readOptions(['--rounds', '3', '--busy', '0', '--workers', '3', '--stops', '--seed', '7', '--', 'a', '-t', 'b']),
    ).toEqual({
      help: false,
      rounds: 3,
      busy: 0,
      workers: 3,
      stops: true,
      seed: 7,
      until: Infinity,
      jest: ['a', '-t', 'b'],
    });
  });

  it.each([
    [['--rounds', '3'], 'Name the tests behind --, for example: -- test/redis/queue'],
    [['--rounds', '0', '--', 'a'], '--rounds must be an integer of 1 or more, not "0"'],
    [['--busy', 'two', '--', 'a'], '--busy must be an integer of 0 or more, not "two"'],
    [['--workers', '0', '--', 'a'], '--workers must be an integer of 1 or more, not "0"'],
    [['--until', '', '--', 'a'], '--until must be an integer of 1 or more, not ""'],
  ])('refuse %j', (args, message) => {
    expect(() => readOptions(args)).toThrow(message);
  });
});

describe('the processes of a test run', () => {
  it('are the first one and all that come from it, without those that a test has stopped', () => {
    const table = ' 1 0 Ss\n10 1 Sl+\n11 10 R\n12 11 S\n13 11 T\n14 13 S\n20 1 S\n';
    expect(runningIn(table, 10)).toEqual([10, 11, 12, 14]);
    expect(runningIn(table, 10, 1)).toEqual([10, 11]);
  });

  describe('on this machine', () => {
    let parent: ChildProcess;
    afterEach(() => signalAll(runningTree(parent.pid!), 'SIGKILL'));

    it('stand still together, and go on', async () => {
      const child = `require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])`;
      parent = spawn(process.execPath, ['-e', child], { stdio: 'ignore' });
      const tree = await eventually(() => {
        const pids = runningTree(parent.pid!);
        expect(pids).toHaveLength(2);
        return pids;
      });

      const ended = new AbortController();
      const stops = standStill(parent.pid!, () => 0.5, ended.signal);
      await eventually(() => expect(runningTree(parent.pid!)).toEqual([]));
      ended.abort(); // in the middle of a stop
      await stops;

      expect(runningTree(parent.pid!)).toEqual(tree);
    });
  });
});

describe('what failed', () => {
  const assertion = (fullName: string, status: string, ...failureMessages: string[]) => ({
    fullName,
    status,
    failureMessages,
  });

  it('is named by file and test; a file that could not run is named as well', () => {
    const report = {
      testResults: [
        {
          name: '/p/test/a.test.ts',
          status: 'failed',
          message: '',
          assertionResults: [assertion('x holds', 'failed', 'Error: no'), assertion('y', 'passed')],
        },
        { name: '/p/test/b.test.ts', status: 'failed', message: 'SyntaxError', assertionResults: [] },
        { name: '/p/test/c.test.ts', status: 'passed', message: '', assertionResults: [assertion('z', 'passed')] },
      ],
    };
    // The folder of the project, with a slash behind it or without.
    for (const folder of ['/p', '/p/']) {
      expect(failuresIn(report, folder)).toEqual([
        { test: 'test/a.test.ts > x holds', message: 'Error: no' },
        { test: 'test/b.test.ts', message: 'SyntaxError' },
      ]);
    }
  });

  it('is counted over the rounds, the worst first, with the seeds that showed it', () => {
    const often = { test: 'a > often', message: 'Error: late\n\n  at x' };
    const once = { test: 'b > once', message: 'Error: early' };
    const rounds = [
      { seed: 5, failures: [once, often] },
      { seed: 6, failures: [] },
      { seed: 7, failures: [often] },
    ];
    expect(summaryOf(rounds)).toBe(
      [
        '2 of 3  a > often',
        '    CHAOS_SEED=5, 7',
        '    Error: late',
        '      at x',
        '1 of 3  b > once',
        '    CHAOS_SEED=5',
        '    Error: early',
        '1 passed, 2 failed',
      ].join('\n'),
    );
  });
});

it('npm run flakes explains itself', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const [, file] = scripts['flakes']!.split(' ');
  const run = (...args: string[]) => spawnSync(process.execPath, [file!, ...args], { cwd: root, encoding: 'utf8' });
  expect(run('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('npm run flakes -- [options]') });
  expect(run()).toMatchObject({ status: 1, stderr: expect.stringContaining('Name the tests behind --') });
});
