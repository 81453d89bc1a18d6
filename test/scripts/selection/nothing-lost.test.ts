// What .ci/run leaves out for a change catches nothing that the change can do: for each mutant, the suite that catches it runs for
// every change, or for one to the room that the mutant breaks.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suitesFor } from '../../../scripts/selection/rooms.mjs';
import { suiteOf } from '../../../scripts/selection/suites.mjs';
import { root } from '../../../scripts/setup.mjs';
import { CRON_MUTANTS } from '../../../tools/chaos/mutants/cron-mutants.mjs';
import { LOCK_MUTANTS } from '../../../tools/chaos/mutants/lock-mutants.mjs';
import { SCRIPTS } from '../../../tools/chaos/mutants/mutate.mjs';
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

/** Whether the test runs for a change to the file: it is no part of a long suite, or the room of the file names that suite. */
function runsFor(test: string, changed: string): boolean {
  const suite = test.startsWith('tools/model/') ? 'model' : suiteOf(test);
  return suite === undefined || suitesFor(changed).includes(suite);
}

const sourcesOf = (file: string) =>
  file === SCRIPTS
    ? ['lib/redis/script/scripts.generated.ts', 'lib/redis/lua/acquire.lua', 'lib/redis/lua/include/granting.lua']
    : [`lib/${file.replace(/\.js$/, '.ts')}`];

const inChaos: Mutant[] = [
  ...LOCK_MUTANTS.map(({ name, file }) => ({
    name,
    breaks: sourcesOf(file),
    caughtBy: 'tools/chaos/mutants/hunt.test.ts',
  })),
  ...CRON_MUTANTS.map(({ name, file }) => ({
    name,
    breaks: sourcesOf(file),
    caughtBy: 'tools/chaos/cron/run-cron.test.ts',
  })),
  ...[...read('test/redis/keys.test.ts').matchAll(/^ {2}\[\s*'([^']+)',\s*\(keys/gm)].map(([, name]) => ({
    name: name!,
    breaks: ['lib/redis/keys.ts'],
    caughtBy: 'test/redis/keys.test.ts',
  })),
];

const LUA = 'lib/redis/lua';
const INCLUDE = `${LUA}/include`;
/** Where the rule stands that a mutant of the model leaves out. */
const RULES: Readonly<Record<string, string>> = {
  RELEASE_ANY: `${INCLUDE}/releasing.lua`,
  RENEW_ANY: `${INCLUDE}/renewal.lua`,
  NO_STAMP: 'lib/core/holding/store-lease.ts',
  REVIVE: 'lib/core/holding/store-lease.ts',
  KEEP_LATE_GRANT: 'lib/core/acquiring/store-waiter.ts',
  STAY_IN_QUEUE: `${INCLUDE}/releasing.lua`,
  WITHDRAW_SILENTLY: 'lib/core/places/place.ts',
  LOSE_SILENTLY: 'lib/core/store/orphan-releases.ts',
  SAME_TOKEN: 'lib/core/acquiring/local-queue.ts',
  NO_RESERVE: `${INCLUDE}/mint.lua`,
  NO_HEARTBEAT: 'lib/core/places/attempts.ts',
  ROTATE_ONCE: 'lib/core/acquiring/store-waiter.ts',
  FULL_TTL: `${INCLUDE}/granting.lua`,
  RELEASE_FOREIGN: 'lib/core/acquiring/local-queues.ts',
  NO_SEAL: `${INCLUDE}/tell-grant.lua`,
  KEEP_OWNER: `${LUA}/retain.lua`,
  KEEP_LEASE: `${LUA}/retain.lua`,
  KEEP_JOINS: `${INCLUDE}/keep-place.lua`,
  KEEP_STAMPS_ONLY: `${INCLUDE}/keep-place.lua`,
  NO_KEEP: 'lib/core/places/place-keeper.ts',
  NO_PROBE: 'lib/core/places/place-keeper.ts',
  OLD_ANSWER: 'lib/core/places/place.ts',
  NO_LOOK: 'lib/core/places/place-keeper.ts',
  NO_SOONEST: `${INCLUDE}/soonest-end.lua`,
  TELL_ONE: `${INCLUDE}/tell-first-waiters.lua`,
  LEAVE_UNTOLD: `${INCLUDE}/tell-left.lua`,
  BARGE: `${INCLUDE}/queue.lua`,
  KEEP_BEHIND_GAP: 'lib/core/holding/several-parts.ts',
  SAME_OWNER: 'lib/core/store/owner-id.ts',
  FORGET_LATE: 'lib/core/lease/lease-factory.ts',
  COUNT_LATE: 'lib/core/lease/lease-factory.ts',
  TRY_AT_ONCE: 'lib/core/lease/lease-factory.ts',
};
const inModel: Mutant[] = MODEL_MUTANTS.map(({ name }: { name: string }) => ({
  name,
  breaks: ['tools/model/lock.pml', RULES[name] ?? 'no rule'],
  caughtBy: 'tools/model/run.mjs',
}));

/** Stores that break a promise: the contract itself has to find each. */
const inStores: Mutant[] = [...read('test/testing/contract/broken-stores.ts').matchAll(/^ {2}'([^']+)': \{/gm)].map(
  ([, name]) => ({
    name: name!,
    breaks: ['lib/testing/contract/suite.ts', 'lib/memory/memory-lock-store.ts', 'lib/redis/redis-lock-store.ts'],
    caughtBy: 'test/testing/contract/found-out.test.ts',
  }),
);

describe.each([
  ['chaos, and of the names of keys', inChaos, 37],
  ['the model', inModel, 32],
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
  'test/redis/faults/one-wrong-job.test.ts': [
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

it('a mutant whose room does not name the suite that catches it would be refused', () => {
  expect(runsFor('tools/chaos/cron/run-cron.test.ts', 'lib/nest/log/lock-log.ts')).toBe(false);
  expect(runsFor('tools/model/run.mjs', 'docs/guide/cron.md')).toBe(false);
  expect(runsFor('tools/model/run.mjs', 'lib/new-room/a.ts')).toBe(true);
});
