import { setTimeout as sleep } from 'node:timers/promises';
import { describeJobStore, describeLockStore } from './describe-stores.js';
import type { ContractRunner, StoreSubject } from './subject.js';
import { type Base, isOnEveryServer, type Suite, suiteOf } from './suite.js';
import { memoryWith } from './broken-stores.js';
import { CollectedTests } from './collected-tests.js';

/** The tests of a suite, on places that say when they are opened and closed. */
function testsOf(
  describeSuite: (suite: Suite<Base & { readonly place: number }>) => void,
  { timeoutMs = 60_000, close = async () => {} } = {},
): { readonly tests: CollectedTests; readonly events: string[] } {
  const events: string[] = [];
  let places = 0;
  const create = (): StoreSubject => {
    const place = ++places;
    events.push(`open ${place}`);
    return {
      ...memoryWith({})(),
      now: async () => place,
      async close() {
        events.push(`close ${place}`);
        await close();
      },
    };
  };
  const tests = new CollectedTests((runner) => {
    const suite = suiteOf(runner, create, timeoutMs);
    describeSuite(suite.with(async ({ subject }) => ({ place: await subject.now() })));
  });
  return { tests, events };
}

describe('a suite of the contract', () => {
  it('opens a place for each test, and closes it at the end', async () => {
    const { tests, events } = testsOf(({ it }) => {
      it('one', ({ place }) => void events.push(`test ${place}`));
      it('two', ({ place }) => void events.push(`test ${place}`));
    });
    expect(events).toEqual([]);
    expect(await tests.firstFailure()).toBeUndefined();
    expect(events).toEqual(['open 1', 'test 1', 'close 1', 'open 2', 'test 2', 'close 2']);
  });

  it('keeps tests apart that run at the same time', async () => {
    const seen: string[] = [];
    const { tests } = testsOf(({ it }) => {
      for (const name of ['one', 'two']) {
        it(name, async ({ place }) => {
          await sleep(1);
          seen.push(`${name} ${place}`);
        });
      }
    });
    await Promise.all(tests.all.map(({ run }) => run()));
    expect(seen.sort()).toEqual(['one 1', 'two 2']);
  });

  it('closes the place of a test that fails, and reports why that failed', async () => {
    const close = async (): Promise<void> => {
      throw new Error('closing fails, too');
    };
    const { tests, events } = testsOf(({ it }) => it('fails', () => Promise.reject(new Error('because'))), { close });
    expect((await tests.firstFailure())?.error.message).toBe('because');
    expect(events).toEqual(['open 1', 'close 1']);
  });

  it('closes the place of a test whose preparation fails', async () => {
    const { tests, events } = testsOf((suite) =>
      suite.with(() => Promise.reject(new Error('not ready'))).it('is never run', () => void events.push('ran')),
    );
    expect((await tests.firstFailure())?.error.message).toBe('not ready');
    expect(events).toEqual(['open 1', 'close 1']);
  });

  it('fails a test whose place cannot be closed', async () => {
    const close = async (): Promise<void> => {
      throw new Error('still in use');
    };
    const { tests } = testsOf(({ it }) => it('passes', () => {}), { close });
    expect((await tests.firstFailure())?.error.message).toBe('still in use');
  });

  it('runs a test of what a store may lack where the store has it', async () => {
    const { tests, events } = testsOf((suite) => {
      for (const first of [1, 2]) {
        suite.where(({ place }) => place === first).it(`${first}`, ({ place }) => void events.push(`test ${place}`));
      }
      suite.where(() => false).it.onEveryServer('never', () => Promise.reject(new Error('ran')));
    });
    expect(await tests.firstFailure()).toBeUndefined();
    expect(events.filter((event) => event.startsWith('test'))).toEqual(['test 1', 'test 2']);
    expect(events.at(-1)).toBe('close 3');
  });

  it('marks tests for every server, and runs them as all others', async () => {
    const { tests, events } = testsOf((suite) => {
      suite.it('not', ({ place }) => void events.push(`test ${place}`));
      suite.with(() => ({})).it.onEveryServer('marked', ({ place }) => void events.push(`marked ${place}`));
    });
    expect(tests.all.filter(({ run }) => isOnEveryServer(run)).map(({ name }) => name)).toEqual(['marked']);
    expect(await tests.firstFailure()).toBeUndefined();
    expect(events).toEqual(['open 1', 'test 1', 'close 1', 'open 2', 'marked 2', 'close 2']);
  });

  it('ends a test that takes too long, and closes its place', async () => {
    const { tests, events } = testsOf(({ it }) => it('hangs', () => new Promise(() => {})), { timeoutMs: 10 });
    expect((await tests.firstFailure())?.error.message).toBe('the test of the store did not end within 10 ms');
    expect(events).toEqual(['open 1', 'close 1']);
  });
});

describe('the contract', () => {
  const namesOf = (describeContract: (runner: ContractRunner) => void): string[] =>
    new CollectedTests(describeContract).all.map(({ name }) => name);

  it('has the parts that are named, in their order', () => {
    const parts = ['queue', 'leases'] as const;
    const names = namesOf((runner) => describeLockStore(runner, memoryWith({}), { parts }));
    expect([...new Set(names.map((name) => name.split(' > ')[0]))]).toEqual(['the queue', 'a lease']);
  });

  it('has no test of semaphores or one queue for a store without them', () => {
    const all = namesOf((runner) => describeLockStore(runner, memoryWith({})));
    for (const [feature, about] of [
      ['semaphores', /semaphore|permits/],
      ['oneQueue', /place in line|different tokens/],
    ] as const) {
      const names = namesOf((runner) => describeLockStore(runner, memoryWith({}), { [feature]: false }));
      expect(names.filter((name) => about.test(name))).toEqual([]);
      expect(all.filter((name) => about.test(name)).length).toBeGreaterThan(0);
      expect(names.length).toBeGreaterThan(200);
    }
  });

  it('has marked tests in each part that talks to a server in a way of its own, and few of them', () => {
    const all = new CollectedTests((runner) => {
      describeLockStore(runner, memoryWith({}));
      runner.describe(describeJobStore.name, () => describeJobStore(runner, memoryWith({})));
    }).all.map(({ name, run }) => ({ part: name.split(' > ')[0], isMarked: isOnEveryServer(run) }));
    const marked = new Set(all.filter(({ isMarked }) => isMarked).map(({ part }) => part));
    // What the scripts of other parts answer to one who asks.
    const OF_OTHER_PARTS = ['what is seen of the holders'];
    expect([...new Set(all.map(({ part }) => part))].filter((part) => !marked.has(part))).toEqual(OF_OTHER_PARTS);
    expect(all.filter(({ isMarked }) => isMarked).length).toBeLessThan(all.length / 3);
  });

  it('gives each test a name of its own', () => {
    const names = namesOf((runner) => describeLockStore(runner, memoryWith({})));
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
});
