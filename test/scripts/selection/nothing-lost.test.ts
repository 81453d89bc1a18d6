// What .ci/run leaves out for a change catches nothing that the change can do: for each mutant, the suite that catches it runs for
// every change, or for one to the room that the mutant breaks.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MUTANTS } from '../../../scripts/selection/mutants.mjs';
import { planFor as planOf, type Plan } from '../../../scripts/selection/plan.mjs';
import { suiteOf } from '../../../scripts/selection/suites.mjs';
import { root } from '../../../scripts/setup.mjs';
import { CRON_MUTANTS } from '../../../tools/chaos/mutants/cron-mutants.mjs';
import { LOCK_MUTANTS } from '../../../tools/chaos/mutants/lock-mutants.mjs';
import { mutants as MODEL_MUTANTS } from '../../../tools/model/configurations.mjs';
import { FAULTS } from './faults.js';

const read = (file: string) => readFileSync(join(root, file), 'utf8');

interface Mutant {
  readonly name: string;
  /** The files that a change like the mutant would be made to. */
  readonly breaks: readonly string[];
  /** The test that catches it. */
  readonly caughtBy: string;
}

const planFor = (...files: string[]): Plan => planOf({ base: '0'.repeat(40), files });

/** Whether the test runs for a change to the file: it is no part of a long suite, or the room of the file names that suite. */
function runsFor(test: string, changed: string): boolean {
  const suite = suiteOf(test);
  return suite === undefined || planFor(changed).runs.includes(suite);
}

const inNames: Mutant[] = [...read('test/redis/keys.test.ts').matchAll(/^ {2}\[\s*'([^']+)',\s*\(keys/gm)].map(
  ([, name]) => ({ name: name!, breaks: ['lib/redis/keys.ts'], caughtBy: 'test/redis/keys.test.ts' }),
);

/** Stores that break a promise: the contract itself has to find each. */
const inStores: Mutant[] = [...read('test/testing/contract/broken-stores.ts').matchAll(/^ {2}'([^']+)': \{/gm)].map(
  ([, name]) => ({
    name: name!,
    breaks: ['lib/testing/contract/suite.ts', 'lib/memory/memory-lock-store.ts', 'lib/redis/redis-lock-store.ts'],
    caughtBy: 'test/testing/contract/found-out.test.ts',
  }),
);

describe('a mutant of chaos, and of the model', () => {
  it('is in the list', () => {
    const names = [...CRON_MUTANTS, ...LOCK_MUTANTS, ...MODEL_MUTANTS].map(({ name }) => name);
    expect(MUTANTS.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    expect(names.length).toBeGreaterThanOrEqual(62);
  });

  it.each(MUTANTS)('$name is tried by $suite for a change to $file', ({ name, suite, file }) => {
    expect([file, existsSync(join(root, file))]).toEqual([file, true]);
    const { runs, mutants } = planFor(file);
    expect(runs).toContain(suite);
    expect(mutants).toContain(name);
  });

  it.each(MUTANTS)('$name is tried by $suite where that suite changes, or what runs it', ({ name, suite }) => {
    const own = { model: 'tools/model/lock.pml', 'chaos cron': 'tools/chaos/cron/run-cron.ts' }[suite];
    for (const file of [own ?? 'tools/chaos/mutants/hunt.ts', 'package.json', 'test/support/redis/redis-server.ts']) {
      const { runs, mutants } = planFor(file);
      expect(runs).toContain(suite);
      expect(mutants ?? [name]).toContain(name);
    }
  });

  it('is not tried where the change is elsewhere', () => {
    const { runs, mutants } = planFor('lib/core/lease/release.ts', 'docs/guide/cron.md', 'test/core/a.test.ts');
    expect(runs).toEqual(expect.arrayContaining(['model', 'chaos mutants']));
    expect(mutants?.toSorted()).toEqual([
      'COUNT_LATE',
      'FORGET_LATE',
      'TRY_AT_ONCE',
      'inner-release-ends-all',
      'inner-release-frees',
    ]);
  });
});

describe.each([
  ['the names of keys', inNames, 7],
  ['the contract of the stores', inStores, 20],
] as const)('mutants of %s', (_, mutants, least) => {
  it('are found in the sources', () => expect(mutants.length).toBeGreaterThanOrEqual(least));

  it.each(mutants)('$name is caught by what a change like it runs: $caughtBy', ({ breaks, caughtBy }) => {
    for (const file of breaks) {
      expect([file, existsSync(join(root, file))]).toEqual([file, true]);
      expect([file, runsFor(caughtBy, file)]).toEqual([file, true]);
    }
  });
});

/** Tests of faults that run where the change is, and not for each one. */
const CONNECTIONS = [
  'package.json',
  'lib/redis/create-connection.ts',
  'lib/redis/connection/ioredis-quirks.ts',
  'lib/redis/durability/durable-server.ts',
  'lib/redis/topology/primary-connection.ts',
  'lib/quorum/quorum-lock-store.ts',
];
const BY_ROOM: Readonly<Record<string, readonly string[]>> = {
  'test/redis/faults/refused-handshakes.test.ts': CONNECTIONS,
  'test/redis/topologies/durability.test.ts': CONNECTIONS,
  'test/redis/jobs/one-wrong-job.test.ts': [
    'lib/redis/redis-job-store.ts',
    'lib/core/jobs/missed-ticks.ts',
    'lib/nest/schedule/job-ticks.ts',
  ],
  'test/stacks/ioredis/old-versions.slow.test.ts': [
    'package.json',
    'lib/redis/connection/server-connection.ts',
    'lib/redis/topology/primary-connection.ts',
  ],
};

describe('a fault that was seen', () => {
  it.each(FAULTS)('is looked for by each run, or by each that can bring it back: %s', (_, file, words) => {
    expect(read(file)).toContain(words);
    const rooms = BY_ROOM[file];
    if (rooms === undefined) expect(suiteOf(file)).toBeUndefined();
    else for (const room of rooms) expect([room, runsFor(file, room)]).toEqual([room, true]);
  });
});

it('a fault whose room does not name the suite that looks for it would be refused', () => {
  expect(runsFor('tools/chaos/cron/run-cron.test.ts', 'lib/nest/log/lock-log.ts')).toBe(false);
  expect(runsFor('test/redis/faults/refused-handshakes.test.ts', 'docs/guide/cron.md')).toBe(false);
  expect(runsFor('test/redis/faults/refused-handshakes.test.ts', 'lib/new-room/a.ts')).toBe(true);
});
