// Which suites a change to a room of the repository can break, beside those that run for each change.
import { MUTANTS } from './mutants.mjs';
import { ALL, onRedis, SERVERS, stack, STACKS } from './suites.mjs';

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
/** Locks of other libraries, beside ours and around their work. */
const MIGRATION = ['migration', 'migration-guides', 'migration-nest11'].map(stack);
/** What a user names, or sees of it in an editor. */
const PUBLIC = ['stack types', 'consumers', 'editor', 'snippets'];
/** What is written with the decorators and the module. */
const APPLICATIONS = ['processes', 'sample app', ...PUBLIC];
const redis = (...folders) => folders.map(onRedis);
const EVERY_SERVER = [...redis(...SERVERS), 'quorum servers', 'command line'];
/** A lock that is taken, held and given back, by one process and by several, while nothing and while everything fails. */
const HOLDING = [...redis('leases', 'processes', 'faults'), 'chaos leaks'];
/** Calls that wait for their turn. */
const WAITING = [...HOLDING, ...redis('queue', 'messages'), 'chaos storms'];
/** How a connection comes about, and ends. */
const CONNECTING = ['contract', ...redis('faults', 'topologies', 'wire'), stack('ioredis'), 'chaos topologies'];
/** Messages of grants. */
const INBOX = [
  ...redis('faults', 'messages', 'queue', 'rights', 'topologies', 'versions'),
  'chaos storms',
  'chaos topologies',
];
/** Ticks of jobs, and what is known of the jobs. */
const JOBS = ['job processes', ...redis('jobs'), 'chaos cron'];
/** Both, as Redis keeps them. */
const JOBS_ON_REDIS = ['contract', ...JOBS, ...redis('rights', 'versions', 'wire'), 'command line', 'chaos names'];

/**
 * `folder/` stands for the files of a folder, `folder/**` also for those of the folders in it, everything else for one file. The line
 * that says most of a file counts. A file without a line can break everything.
 *
 * The model and the mutants of chaos are named where a change can make them fail by itself. Where a change can be like a mutant, they
 * run as well, without a line here: see mutants.mjs.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const ROOMS = {
  'lib/': [...ALL_STACKS, ...APPLICATIONS],

  'lib/core/': [...HOLDING, ...redis('queue', 'wire'), 'command line'],
  'lib/core/util/': ['contract', ...HOLDING, ...redis('queue'), 'demo'],
  'lib/core/api/': [...redis('leases'), ...ALL_STACKS, 'sample app', ...PUBLIC],
  'lib/core/events/': [
    ...redis('leases', 'processes'),
    'sample app',
    'command line',
    'chaos leaks',
    stack('tracing'),
    ...PUBLIC,
  ],
  'lib/core/tracing/': [...redis('wire'), stack('tracing'), ...PUBLIC],
  'lib/core/store/': [
    'contract',
    ...redis('leases', 'faults', 'messages', 'versions', 'wire'),
    'quorum servers',
    'chaos leaks',
    'snippets',
  ],
  'lib/core/places/': [...WAITING, ...redis('topologies', 'versions')],
  'lib/core/deadlocks/': [...redis('fleet'), 'sample app', 'command line'],
  'lib/core/holding/': [...HOLDING, ...redis('queue', 'wire'), stack('contexts'), 'demo', 'chaos storms'],
  'lib/core/acquiring/': [...WAITING, ...redis('fleet', 'versions')],
  'lib/core/lease/': [...HOLDING, ...redis('queue', 'wire'), 'demo', ...MIGRATION],
  'lib/core/semaphore/': [...HOLDING, ...redis('queue'), 'demo'],
  'lib/core/leader/': [...HOLDING, 'processes', 'command line'],
  'lib/core/watch/': [...HOLDING, ...redis('messages'), 'chaos storms'],
  'lib/core/singleton/': [...JOBS, 'demo', 'sample app', 'chaos leaks', ...MIGRATION],
  'lib/core/jobs/': [...JOBS, 'demo', 'sample app', 'command line', 'chaos leaks', 'chaos names'],
  'lib/core/contention/': [...redis('fleet'), 'sample app', 'command line', 'chaos leaks'],
  'lib/core/explain/': ['sample app', 'command line'],
  'lib/core/fleet/': [...redis('fleet', 'rights'), 'demo', 'sample app', 'command line', 'chaos leaks', 'snippets'],
  'lib/core/health/': [...redis('faults', 'messages'), 'quorum servers', 'sample app', 'command line', 'chaos storms'],

  'lib/memory/': ['contract', ...redis('processes'), 'races', 'snippets', 'chaos cron', 'consumers'],
  'lib/quorum/': [
    'contract',
    ...redis('faults', 'topologies'),
    'quorum servers',
    'demo',
    'chaos topologies',
    'chaos storms',
    ...MIGRATION,
  ],

  'lib/redis/': [
    'contract',
    ...redis('leases', 'queue', 'faults', 'rights', 'versions', 'wire'),
    'chaos leaks',
    'chaos names',
  ],
  'lib/redis/redis-job-store.ts': JOBS_ON_REDIS,
  'lib/redis/job-entries.ts': JOBS_ON_REDIS,
  'lib/redis/redis-roll-calls.ts': ['contract', ...redis('fleet', 'rights'), 'command line', 'chaos leaks'],
  'lib/redis/inbox-probes.ts': INBOX,
  'lib/redis/grant-seal.ts': INBOX,
  // Made of the scripts. What is always run refuses one that is stale.
  'lib/redis/script/scripts.generated.ts': [],
  'lib/memory/scripts.generated.ts': [],
  'lib/redis/create-connection.ts': CONNECTING,
  'lib/redis/inbox.ts': INBOX,
  'lib/redis/lua/**': ['contract', ...redis('leases', 'queue', 'processes', 'jobs', 'rights', 'versions', 'wire')],
  'lib/redis/script/': [
    'contract',
    ...redis('faults', 'jobs', 'leases', 'rights', 'topologies', 'wire'),
    stack('ioredis'),
  ],
  'lib/redis/connection/': [...CONNECTING, ...redis('messages'), stack('migration'), 'chaos storms'],
  'lib/redis/durability/': [...CONNECTING, 'chaos storms'],
  'lib/redis/topology/': [...CONNECTING, ...redis('jobs', 'messages'), stack('migration'), 'chaos storms'],
  'lib/redis/fence/': [...redis('faults', 'wire'), 'chaos names', stack('databases'), ...PUBLIC],
  'lib/redis/health/': [...redis('faults'), 'quorum servers', 'command line', 'chaos storms', 'chaos topologies'],

  'lib/sql/': [stack('databases'), 'sample app', 'demo', ...PUBLIC],

  'lib/telemetry/**': [stack('tracing'), 'sample app', ...PUBLIC],
  'lib/health/': ['sample app', ...PUBLIC],
  'lib/cli/**': ['command line', 'snippets', 'consumers'],
  'lib/views/': ['command line', ...redis('fleet'), ...APPLICATIONS],
  'lib/console/page/**': ['browser'],
  'lib/console/**': ['browser', ...APPLICATIONS, ...redis('fleet'), 'command line'],

  'lib/nest/': [...ALL_STACKS, ...APPLICATIONS],
  'lib/nest/module/': [...ALL_STACKS, 'processes', 'demo', ...redis('faults', 'wire'), ...PUBLIC, 'chaos storms'],
  'lib/nest/decorators/': [...ALL_STACKS, ...APPLICATIONS],
  'lib/nest/request/': [...CALLS, ...APPLICATIONS],
  'lib/nest/handlers/': [...CALLS, stack('databases'), stack('tracing'), ...APPLICATIONS],
  'lib/nest/transactions/': [stack('databases'), stack('contexts'), ...APPLICATIONS],
  'lib/nest/leader/': [stack('contexts'), 'demo', ...APPLICATIONS],
  'lib/nest/schedule/': [...JOBS, 'chaos names', stack('tracing'), ...MIGRATION, 'sample app', ...PUBLIC],
  'lib/nest/jobs/': [...JOBS, stack('tracing'), 'command line', 'sample app', ...PUBLIC],
  'lib/nest/log/': APPLICATIONS,

  'lib/testing/**': ['races', 'sample app', ...PUBLIC],
  'lib/testing/contract/**': ['contract', 'races', ...PUBLIC],
  'lib/testing/fleet/manual-clock.ts': ['races', 'sample app', ...redis('leases', 'wire'), ...PUBLIC],
  'lib/testing/contract/grant-log.ts': ['contract', ...redis('faults', 'queue', 'rights')],

  'docs/**': ['site', 'snippets', 'sample app', 'demo'],
  'docs/guide/fencing.md': ['site', 'snippets', stack('databases')],
  'docs/guide/fencing-drivers.md': ['site', 'snippets', stack('databases')],
  'docs/guide/testing.md': ['site', 'snippets', 'consumers'],
  'docs/operations/acl.md': ['site', 'snippets', ...redis('rights', 'messages'), 'consumers'],
  'README.md': ['site', 'snippets', 'consumers'],
  'AGENTS.md': ['snippets'],
  'CONTRIBUTING.md': ['site'],
  'SECURITY.md': ['site'],
  // A page of the site, too. Nearly every change adds a line to it, and test/tools/packed-files.test.ts follows its links.
  'CHANGELOG.md': [],
  LICENSE: [],
  'api.md': [],
  '.github/**': [],

  'sample-app/**': ['sample app', 'demo', 'site', 'snippets'],

  'test/cli/**': ['command line'],
  'test/console/': [],
  'test/console/browser/**': ['browser'],
  'test/console/console-apps.ts': ['browser'],
  'test/core/**': [],
  'test/docs/**': ['snippets'],
  'test/docs/guides.ts': ['site', 'snippets', 'sample app', 'demo', 'command line', stack('databases')],
  'test/docs/site/**': ['site'],
  'test/nest/**': ['processes', 'job processes', 'editor', 'command line'],
  'test/nest/nest-apps.ts': [...ALL_STACKS, 'processes', 'job processes', ...EVERY_SERVER, 'browser'],
  'test/quorum/**': [],
  'test/quorum/servers/**': ['quorum servers'],
  'test/redis/**': [],
  ...Object.fromEntries(SERVERS.map((folder) => [`test/redis/${folder}/**`, redis(folder)])),
  'test/redis/queue/script-lengths.ts': redis('queue', 'leases'),
  'test/redis/topologies/certificates.ts': [...redis('topologies'), 'command line'],
  'test/redis/topologies/replica-pair.ts': redis('topologies', 'faults'),
  'test/redis/topologies/tls-args.ts': [...redis('topologies'), 'command line'],
  'test/scripts/**': [],
  'test/sql/**': [],
  'test/telemetry/**': [],
  'test/testing/**': ['races', 'snippets'],
  'test/tools/**': [],
  'test/timings.json': [],
  'test/views/**': [],
  'test/types/**': ['editor'],
  'test/stores/**': ['contract'],
  'test/support/process/browser.mjs': ['browser', 'site'],
  'test/support/names/**': [...redis('wire'), 'chaos names'],
  'test/support/prometheus/**': ['sample app'],
  'test/support/sql/**': [stack('databases')],
  'test/support/sql/pglite.mjs': ['snippets', 'sample app', 'demo', 'stack databases'],
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
  'tools/console/**': ['browser'],
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
 * The suites that a change to the file can break, beside those that run for each change: those of its room, and those that try mutants
 * which are like a change there.
 *
 * @param {string} file
 * @returns {readonly string[]}
 */
export function suitesFor(file) {
  const room = roomOf(file);
  if (room === undefined) return ALL;
  const tried = MUTANTS.filter((mutant) => roomOf(mutant.file) === room).map(({ suite }) => suite);
  return [...new Set([...ROOMS[room], ...tried])];
}

/**
 * The names of the mutants to try when these files have changed, or `undefined` for all.
 *
 * @param {readonly string[]} files
 * @returns {readonly string[] | undefined}
 */
export function mutantsFor(files) {
  const rooms = new Set(files.map(roomOf));
  if (rooms.has(undefined)) return undefined;
  // What tries them has changed, and not what they are like.
  const changed = new Set([...rooms].filter((room) => !room.startsWith('lib/')).flatMap((room) => ROOMS[room]));
  return MUTANTS.filter(({ suite, file }) => changed.has(suite) || rooms.has(roomOf(file))).map(({ name }) => name);
}
