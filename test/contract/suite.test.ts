import { describeJobStore, describeLockStore } from './describe-stores.js';
import type { ContractRunner } from './subject.js';
import { isOnEveryServer } from './suite.js';
import { memoryWith } from './broken-stores.js';
import { CollectedTests } from './collected-tests.js';

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
    // The replies of other parts' scripts.
    const OF_OTHER_PARTS = ['what is seen of the holders'];
    expect([...new Set(all.map(({ part }) => part))].filter((part) => !marked.has(part))).toEqual(OF_OTHER_PARTS);
    expect(all.filter(({ isMarked }) => isMarked).length).toBeLessThan(all.length / 3);
  });

  it('gives each test a name of its own', () => {
    const names = namesOf((runner) => describeLockStore(runner, memoryWith({})));
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
});
