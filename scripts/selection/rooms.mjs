// Which suites a change to a room of the repository can break, beside those that run for each change.
import { ALL, stack, STACKS } from './suites.mjs';

const CHAOS = ['chaos cron', 'chaos names', 'chaos leaks', 'chaos storms', 'chaos topologies'];
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
const PUBLIC = ['stack types', 'consumers'];
/** What every call goes through, on any store. */
const CALL = ['contract', ...CHAOS];
/** What the model of the protocol speaks of. */
const PROTOCOL = ['model', ...CALL];

/**
 * `folder/` stands for the files of a folder, `folder/**` also for those of the folders in it, everything else for one file. The line
 * that says most of a file counts. A file without a line can break everything.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const ROOMS = {
  'lib/': [...ALL_STACKS, 'consumers', 'site'],

  'lib/core/': [...CALL, ...MIGRATION],
  'lib/core/util/': [...CALL, stack('redisson')],
  'lib/core/api/': [...CALL, ...ALL_STACKS, 'consumers', 'site'],
  'lib/core/events/': ['chaos leaks', stack('tracing'), stack('redisson'), ...PUBLIC],
  'lib/core/tracing/': [stack('tracing'), ...PUBLIC],
  'lib/core/store/': [...PROTOCOL, ...MIGRATION],
  'lib/core/places/': PROTOCOL,
  'lib/core/holding/': [...PROTOCOL, stack('contexts')],
  'lib/core/acquiring/': PROTOCOL,
  'lib/core/lease/': [...PROTOCOL, ...MIGRATION],
  'lib/core/semaphore/': ['contract', 'chaos names', 'chaos leaks', 'chaos storms', 'chaos topologies'],
  'lib/core/leader/': ['contract', 'chaos names', 'chaos leaks', 'chaos storms', 'chaos topologies'],
  'lib/core/latch/': ['contract', 'chaos names', 'chaos leaks', 'chaos storms', 'chaos topologies'],
  'lib/core/watch/': ['contract', 'chaos names', 'chaos leaks', 'chaos storms', 'chaos topologies'],
  'lib/core/singleton/': [...CALL, ...MIGRATION],
  'lib/core/jobs/': ['contract', 'chaos cron', 'chaos leaks', 'chaos names'],
  'lib/core/contention/': ['chaos leaks'],
  'lib/core/explain/': ['contract'],
  'lib/core/health/': ['contract', 'chaos storms'],

  'lib/memory/': ['contract', 'chaos cron', 'consumers'],
  'lib/quorum/': [...CALL, ...MIGRATION],

  'lib/redis/': [...CALL, ...MIGRATION, stack('ioredis')],
  'lib/redis/lua/**': [...PROTOCOL, ...MIGRATION],
  'lib/redis/script/': [...PROTOCOL, ...MIGRATION, stack('ioredis')],
  'lib/redis/connection/': [...CALL, ...MIGRATION, stack('ioredis')],
  'lib/redis/durability/': ['contract', 'chaos leaks', 'chaos storms', 'chaos topologies', stack('ioredis')],
  'lib/redis/topology/': [...CALL, ...MIGRATION, stack('ioredis')],
  'lib/redis/fence/': ['chaos names', 'chaos leaks', stack('databases'), ...PUBLIC],
  'lib/redis/health/': ['contract', 'chaos storms', 'chaos topologies'],

  'lib/migration/': [...MIGRATION, ...PUBLIC],
  'lib/telemetry/**': [stack('tracing'), ...PUBLIC],
  'lib/health/': PUBLIC,

  'lib/nest/': [...ALL_STACKS, 'consumers', 'chaos leaks', 'chaos names', 'chaos storms'],
  'lib/nest/module/': [...ALL_STACKS, 'consumers', 'chaos leaks', 'chaos names', 'chaos storms'],
  'lib/nest/decorators/': [...ALL_STACKS, 'consumers'],
  'lib/nest/request/': [...CALLS, 'consumers'],
  'lib/nest/handlers/': [...CALLS, stack('databases'), stack('tracing'), ...PUBLIC],
  'lib/nest/transactions/': [stack('databases'), stack('contexts'), ...PUBLIC],
  'lib/nest/leader/': [stack('contexts'), ...PUBLIC],
  'lib/nest/schedule/': ['chaos cron', 'chaos names', stack('tracing'), ...MIGRATION, ...PUBLIC],
  'lib/nest/jobs/': ['chaos cron', stack('tracing'), ...PUBLIC],
  'lib/nest/log/': ['consumers'],

  'lib/testing/**': PUBLIC,
  'lib/testing/contract/**': ['contract', ...PUBLIC],

  'docs/**': ['site'],
  'docs/guide/fencing.md': ['site', stack('databases')],
  'docs/guide/fencing-drivers.md': ['site', stack('databases')],
  'docs/guide/testing.md': ['site', 'consumers'],
  'docs/migration/from-redisson.md': ['site', stack('redisson')],
  'docs/operations/acl.md': ['site', 'consumers'],
  'README.md': ['site', 'consumers'],
  'CONTRIBUTING.md': ['site'],
  'SECURITY.md': ['site'],
  // A page of the site, too. Nearly every change adds a line to it, and test/tools/packed-files.test.ts follows its links.
  'CHANGELOG.md': [],
  LICENSE: [],
  'api.md': [],
  '.github/**': [],

  'sample-app/**': [],

  'test/core/**': [],
  'test/docs/**': [],
  'test/docs/guides.ts': ['site', stack('databases'), stack('redisson')],
  'test/docs/site/**': ['site'],
  'test/migration/**': [],
  'test/nest/**': [],
  'test/nest/nest-apps.ts': ALL_STACKS,
  'test/quorum/**': [],
  'test/redis/**': [],
  'test/scripts/**': [],
  'test/telemetry/**': [],
  'test/testing/**': [],
  'test/tools/**': [],
  'test/timings.json': [],
  'test/types/**': [],
  'test/stores/**': ['contract'],
  'test/support/names/**': ['chaos names'],
  'test/support/prometheus/**': [],
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
  'tools/commits/**': [],
  'tools/line-coverage/**': [],
  'tools/docs/**': ['site'],
  'tools/flakes/**': [],
  'tools/reference/**': ['site'],
  'tools/release/**': [],
  'tools/walk/**': [],
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
