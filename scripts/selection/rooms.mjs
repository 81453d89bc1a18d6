// Which suites a change to a room of the repository can break, beside those that run for each change.
import { ALL, stack, STACKS } from './suites.mjs';

const CHAOS = ['chaos mutants', 'chaos cron', 'chaos names', 'chaos leaks', 'chaos storms', 'chaos topologies'];
const ALL_STACKS = [...STACKS.map(stack), 'stack types'];
/** How Nest calls what is decorated. */
const CALLS = [
  'bullmq',
  'bullmq-nest11',
  'commander',
  'contexts',
  'events',
  'gateways',
  'graphql',
  'graphql-nest11',
  'messages-nest11',
  'microservices',
].map(stack);
/** Locks of other libraries, held beside ours. */
const MIGRATION = ['migration', 'migration-guides', 'migration-nest11', 'redisson'].map(stack);
/** What a user names, or sees of it in an editor. */
const PUBLIC = ['stack types', 'consumers', 'editor', 'snippets'];
/** What is written with the decorators and the module. */
const APPLICATIONS = ['processes', 'sample app', ...PUBLIC];
/** What every call goes through, on any store. */
const CALL = ['contract', 'servers', 'processes', 'sample app', ...CHAOS];
/** What stands beside locks: the cron and the mutants of chaos do not use it. */
const BESIDE_LOCKS = CALL.filter((suite) => suite !== 'chaos cron' && suite !== 'chaos mutants');
/** What the model of the protocol speaks of. */
const PROTOCOL = ['model', ...CALL];

/**
 * `folder/` stands for the files of a folder, `folder/**` also for those of the folders in it, everything else for one file. The line
 * that says most of a file counts. A file without a line can break everything.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const ROOMS = {
  'lib/': [...ALL_STACKS, ...APPLICATIONS, 'servers', 'races', 'site'],

  'lib/core/': [...CALL, ...MIGRATION],
  'lib/core/util/': [...CALL, 'races', stack('redisson')],
  'lib/core/api/': [...CALL, ...ALL_STACKS, ...PUBLIC, 'races', 'site'],
  'lib/core/events/': [
    'servers',
    'processes',
    'sample app',
    'chaos leaks',
    stack('tracing'),
    stack('redisson'),
    ...PUBLIC,
  ],
  'lib/core/tracing/': ['servers', stack('tracing'), ...PUBLIC],
  'lib/core/store/': [...PROTOCOL, ...MIGRATION, 'races', 'snippets'],
  'lib/core/places/': PROTOCOL,
  'lib/core/deadlocks/': ['servers', 'sample app'],
  'lib/core/holding/': [...PROTOCOL, stack('contexts')],
  'lib/core/acquiring/': PROTOCOL,
  'lib/core/lease/': [...PROTOCOL, ...MIGRATION],
  'lib/core/semaphore/': BESIDE_LOCKS,
  'lib/core/leader/': BESIDE_LOCKS,
  'lib/core/latch/': BESIDE_LOCKS,
  'lib/core/watch/': BESIDE_LOCKS,
  'lib/core/singleton/': [...CALL, ...MIGRATION],
  'lib/core/jobs/': ['contract', 'servers', 'processes', 'sample app', 'chaos cron', 'chaos leaks', 'chaos names'],
  'lib/core/contention/': ['servers', 'sample app', 'chaos leaks'],
  'lib/core/explain/': ['contract', 'sample app'],
  'lib/core/fleet/': ['contract', 'servers', 'processes', 'sample app', 'chaos leaks', 'snippets'],
  'lib/core/health/': ['contract', 'servers', 'sample app', 'chaos storms'],

  'lib/memory/': ['contract', 'servers', 'races', 'snippets', 'chaos cron', 'consumers'],
  'lib/quorum/': [...CALL, ...MIGRATION],

  'lib/redis/': [...CALL, ...MIGRATION, stack('ioredis'), 'snippets'],
  'lib/redis/lua/**': [...PROTOCOL, ...MIGRATION],
  'lib/redis/script/': [...PROTOCOL, ...MIGRATION, stack('ioredis')],
  'lib/redis/connection/': [...CALL, ...MIGRATION, stack('ioredis')],
  'lib/redis/durability/': ['contract', 'servers', 'chaos leaks', 'chaos storms', 'chaos topologies', stack('ioredis')],
  'lib/redis/topology/': [...CALL, ...MIGRATION, stack('ioredis')],
  'lib/redis/fence/': ['servers', 'chaos names', 'chaos leaks', stack('databases'), ...PUBLIC],
  'lib/redis/health/': ['contract', 'servers', 'chaos storms', 'chaos topologies'],

  'lib/migration/': [...MIGRATION, 'servers', ...PUBLIC],
  'lib/migration/both/': [...MIGRATION, 'servers', ...PUBLIC],
  'lib/telemetry/**': [stack('tracing'), 'sample app', ...PUBLIC],
  'lib/health/': ['sample app', ...PUBLIC],
  'lib/cli/**': ['servers', 'snippets', 'consumers'],
  'lib/console/**': [...APPLICATIONS, 'servers'],

  'lib/nest/': [...ALL_STACKS, ...APPLICATIONS, 'servers', 'races', 'chaos leaks', 'chaos names', 'chaos storms'],
  'lib/nest/module/': [...ALL_STACKS, ...APPLICATIONS, 'servers', 'chaos leaks', 'chaos names', 'chaos storms'],
  'lib/nest/decorators/': [...ALL_STACKS, ...APPLICATIONS],
  'lib/nest/request/': [...CALLS, ...APPLICATIONS],
  'lib/nest/handlers/': [...CALLS, stack('databases'), stack('tracing'), ...APPLICATIONS],
  'lib/nest/transactions/': [stack('databases'), stack('contexts'), ...APPLICATIONS],
  'lib/nest/leader/': [stack('contexts'), ...APPLICATIONS],
  'lib/nest/schedule/': ['servers', 'chaos cron', 'chaos names', stack('tracing'), ...MIGRATION, ...APPLICATIONS],
  'lib/nest/jobs/': ['servers', 'chaos cron', stack('tracing'), ...APPLICATIONS],
  'lib/nest/log/': APPLICATIONS,

  'lib/testing/**': ['races', 'sample app', ...PUBLIC],
  'lib/testing/contract/**': ['contract', 'servers', 'races', ...PUBLIC],

  'docs/**': ['site', 'snippets', 'sample app'],
  'docs/guide/fencing.md': ['site', 'snippets', stack('databases')],
  'docs/guide/fencing-drivers.md': ['site', 'snippets', stack('databases')],
  'docs/guide/testing.md': ['site', 'snippets', 'consumers'],
  'docs/migration/from-redisson.md': ['site', 'snippets', stack('redisson')],
  'docs/operations/acl.md': ['site', 'snippets', 'servers', 'consumers'],
  'README.md': ['site', 'snippets', 'consumers'],
  'CONTRIBUTING.md': ['site'],
  'SECURITY.md': ['site'],
  // A page of the site, too. Nearly every change adds a line to it, and test/tools/packed-files.test.ts follows its links.
  'CHANGELOG.md': [],
  LICENSE: [],
  'api.md': [],
  '.github/**': [],

  'sample-app/**': ['sample app', 'site', 'snippets'],

  'test/cli/**': ['servers'],
  'test/core/**': [],
  'test/docs/**': ['snippets'],
  'test/docs/guides.ts': ['site', 'snippets', 'sample app', stack('databases'), stack('redisson')],
  'test/docs/site/**': ['site'],
  'test/migration/**': [],
  'test/nest/**': ['processes', 'editor'],
  'test/nest/nest-apps.ts': [...ALL_STACKS, 'processes', 'servers'],
  'test/quorum/**': [],
  'test/quorum/servers/**': ['servers'],
  'test/redis/**': ['servers'],
  'test/scripts/**': [],
  'test/telemetry/**': [],
  'test/testing/**': ['races', 'snippets'],
  'test/tools/**': [],
  'test/timings.json': [],
  'test/types/**': ['editor'],
  'test/stores/**': ['contract'],
  'test/support/names/**': ['servers', 'chaos names'],
  'test/support/prometheus/**': ['sample app'],
  'test/support/redisson/**': [stack('redisson')],
  'test/support/sql/**': [stack('databases')],
  'test/package/**': ['consumers'],
  'test/stacks/': ALL_STACKS,
  'test/stacks/types.slow.test.ts': ['stack types'],
  ...Object.fromEntries(STACKS.map((folder) => [`test/stacks/${folder}/**`, [stack(folder), 'stack types']])),
  // messages-nest11 and migration-nest11 use what is there.
  'test/stacks/gateways/**': [stack('gateways'), stack('messages-nest11'), 'stack types'],
  'test/stacks/migration-guides/**': [stack('migration-guides'), stack('migration-nest11'), 'stack types'],

  'tools/model/**': ['model'],
  'tools/chaos/**': CHAOS,
  'tools/chaos/cron/**': ['chaos cron'],
  'tools/chaos/names/**': ['chaos names'],
  'tools/chaos/leaks/**': ['chaos leaks'],
  'tools/chaos/storms/**': ['chaos storms'],
  'tools/chaos/storms-run.test.ts': ['chaos storms'],
  'tools/chaos/topologies-run.test.ts': ['chaos topologies'],
  'tools/api/**': [],
  'tools/bench/**': [],
  'tools/budget/**': [],
  'tools/commits/**': [],
  'tools/line-coverage/**': [],
  'tools/docs/**': ['site', 'snippets'],
  'tools/flakes/**': [],
  'tools/reference/**': ['site', 'snippets'],
  'tools/release/**': [],
  'tools/walk/**': ['snippets'],
};

/**
 * The line of the table that counts for the file, or `undefined` where there is none.
 *
 * @param {string} file
 */
export function roomOf(file) {
  if (Object.hasOwn(ROOMS, file)) return file;
  const folder = file.slice(0, file.lastIndexOf('/') + 1);
  if (Object.hasOwn(ROOMS, folder)) return folder;
  for (let around = folder; around !== ''; around = around.slice(0, around.lastIndexOf('/', around.length - 2) + 1)) {
    if (Object.hasOwn(ROOMS, `${around}**`)) return `${around}**`;
  }
  return undefined;
}

/**
 * The suites that a change to the file can break, beside those that run for each change.
 *
 * @param {string} file
 * @returns {readonly string[]}
 */
export function suitesFor(file) {
  const room = roomOf(file);
  return room === undefined ? ALL : ROOMS[room];
}
