import { setImmediate } from 'node:timers/promises';
import { Deferred } from '../../lib/core/util/promises.js';
import type { Stages } from '../../scripts/ci/stages.mjs';
import { PARTS, runParts } from '../../scripts/test-parts.mjs';

describe('npm run test:long', () => {
  it('runs with their larger amounts the tests on servers, in browsers and in stacks that have them', () => {
    const { amounts } = PARTS['long']!().front;
    expect(amounts).toEqual(
      expect.arrayContaining([
        'test/console/browser/scale.slow.test.ts',
        'test/redis/processes/newest-first.slow.test.ts',
        'test/stacks/databases/fence/frozen.slow.test.ts',
      ]),
    );
    expect(amounts).not.toContain('test/redis/processes/semaphore.test.ts');
  });
});

describe('the parts of a command', () => {
  const PLAN = { front: { one: ['1'], two: ['2'] }, beside: { package: ['3'], chaos: ['4'] } };
  let ends: Record<string, Deferred<boolean>>;
  let environments: Record<string, NodeJS.ProcessEnv>;
  let all: Promise<void>;

  const start = (others?: Promise<unknown>): void => {
    [ends, environments] = [{}, {}];
    const run = (name: string, _command: string, _args: unknown, { env }: { env: NodeJS.ProcessEnv }) => {
      environments[name] = env;
      ends[name] = new Deferred();
      return ends[name].promise;
    };
    const stages = { front: run, beside: run } as unknown as Stages;
    all = runParts(stages, PLAN, { env: { SPEED: 'all' }, envOf: { chaos: { MUTANTS: 'A' } }, others });
  };
  const end = async (name: string): Promise<void> => {
    ends[name]!.resolve(true);
    await setImmediate();
  };
  const started = () => Object.keys(ends);

  it('run in front one after the other; those beside them wait for each other, and for what else is beside them', async () => {
    const model = new Deferred<void>();
    start(model.promise);
    expect(started()).toEqual(['one', 'package']);
    await end('package');
    expect(started()).toEqual(['one', 'package']);
    model.resolve();
    await setImmediate();
    expect(started()).toEqual(['one', 'package', 'chaos']);
    await end('one');
    expect(started()).toEqual(['one', 'package', 'chaos', 'two']);
    await end('two');
    await end('chaos');
    await all;
  });

  it('wait for nothing once no part is in front any more', async () => {
    start(new Promise(() => {}));
    await end('one');
    await end('two');
    expect(started()).toEqual(['one', 'package', 'two', 'chaos']);
    await end('package');
    await end('chaos');
    await all;
  });

  it('have an environment of their own, which the others do not see', async () => {
    start();
    await end('package');
    expect(environments).toEqual({
      one: { SPEED: 'all' },
      package: { SPEED: 'all' },
      chaos: { SPEED: 'all', MUTANTS: 'A' },
    });
  });
});
