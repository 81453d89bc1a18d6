/**
 * Which room of lib/ may import which. `npm run lint` checks every import, type-only ones included; a wrong arrow or a cycle fails it.
 * test/tools/arrows.slow.test.ts proves that each arrow which is not in this table is refused.
 */

const API = ['kernel/api', 'kernel/util'];
const EVENTS = [...API, 'kernel/events'];
const TRACING = [...EVENTS, 'kernel/tracing'];
const STORE = [...TRACING, 'kernel/store'];
const PLACES = [...STORE, 'kernel/places'];
const HOLDING = [...PLACES, 'kernel/deadlocks', 'kernel/holding'];
const ACQUIRING = [...HOLDING, 'kernel/acquiring'];
const LEASE = [...ACQUIRING, 'kernel/lease'];
/** What a feature does with leases: it needs no Nest and no Redis. */
const FEATURES = ['fence', 'jobs', 'leader', 'once', 'watch'].map((name) => `features/${name}/core`);
const FLEET = ['contention', 'explain', 'findings', 'health', 'roll'].map((name) => `features/fleet/core/${name}`);
const CORE = [...LEASE, 'kernel/semaphore', ...FEATURES, ...FLEET, 'features/fleet/core', 'kernel'];
const DECORATORS = [...CORE, 'nest', 'nest/log', 'nest/decorators'];

const COMMAND_LINE = [...CORE, 'extras/views', 'redis', 'redis/connection', 'redis/script'];

const NEST = ['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'];

/**
 * Each room, what it may import beside itself and node:*, and which packages. A room is a folder without the folders in it.
 *
 * @type {Record<string, { rooms: readonly string[], packages?: readonly string[], why: string }>}
 */
export const ROOMS = {
  // The kernel: what a lock is. Its layers import those above them in this list.
  'kernel/util': { rooms: [], why: 'Time, chance and waiting know nothing about locks.' },
  'kernel/api': { rooms: ['kernel/util'], why: 'What users name depends on nothing that does the work.' },
  'kernel/events': { rooms: API, why: 'What is reported does not know what reports it, or who listens.' },
  'kernel/tracing': { rooms: EVENTS, why: 'What follows a lock does not know what it follows, or who listens.' },
  'kernel/store': { rooms: TRACING, why: 'The ports to a store do not know who asks.' },
  'kernel/places': {
    rooms: STORE,
    why: 'Waiting in the queue of a store does not know which call waits, or what it holds then.',
  },
  'kernel/deadlocks': {
    rooms: API,
    why: 'Which calls wait for each other. It does not know how they wait, or who is asked.',
  },
  'kernel/holding': {
    rooms: [...PLACES, 'kernel/deadlocks'],
    why: 'What this process holds does not know how it was acquired.',
  },
  'kernel/acquiring': { rooms: HOLDING, why: 'Waiting ends with a hold; what the holder does with it comes later.' },
  'kernel/lease': { rooms: ACQUIRING, why: 'A lease is what the features are built on.' },
  'kernel/semaphore': { rooms: LEASE, why: 'A mode of the kernel with a service of its own.' },
  kernel: { rooms: CORE, why: 'wire.ts connects the layers, and the lock client is the door to each feature.' },

  // One store each.
  'redis/lua': { rooms: [], why: 'Lua only.' },
  'redis/script': {
    rooms: [...STORE, 'features/jobs/core', 'features/once/core'],
    packages: ['ioredis'],
    why: 'A script does not know over which connection it is sent.',
  },
  'redis/connection': { rooms: [...STORE, 'redis/script'], packages: ['ioredis'], why: 'One server.' },
  'redis/durability': {
    rooms: [...STORE, 'redis/script', 'redis/connection'],
    packages: ['ioredis'],
    why: 'A durable server wraps a server.',
  },
  'redis/topology': {
    rooms: [...STORE, 'redis/script', 'redis/connection', 'redis/durability'],
    packages: ['ioredis'],
    why: 'Which server is asked.',
  },
  'redis/health': {
    rooms: [...STORE, 'redis/script', 'redis/connection'],
    packages: ['ioredis'],
    why: 'What a server answers to a probe. It does not know who asks.',
  },
  redis: {
    rooms: [...STORE, 'redis/script', 'redis/connection', 'redis/durability', 'redis/topology', 'redis/health'],
    packages: ['ioredis'],
    why: 'The stores stand on one Redis, and implement the ports of the kernel.',
  },
  memory: {
    rooms: [...STORE, 'redis', 'redis/script', 'features/jobs/redis', 'features/once/redis'],
    why: 'A Redis in memory, for the stores that run scripts. It needs no ioredis: see build.mjs.',
  },
  quorum: { rooms: [...STORE, 'features/jobs/core'], why: 'The backends do not know each other.' },

  // A feature is complete in its folder: `core` stands on the kernel, `redis` on one Redis, `nest` on the service.
  'features/jobs/core': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'features/leader/core': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'features/watch/core': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'features/once/core': {
    rooms: [...LEASE, 'features/watch/core'],
    why: 'A feature hangs below the lock client. Calls of once() wait until the lock of another one is free.',
  },
  'features/fleet/core/contention': {
    rooms: EVENTS,
    why: 'Which group waits for which follows from events. It does not know the locks.',
  },
  'features/fleet/core/explain': {
    rooms: [...LEASE, 'features/fleet/core/roll'],
    why: 'What is seen of a lock, and what all instances say of it, is explained. It changes nothing.',
  },
  'features/fleet/core/health': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'features/fleet/core/roll': { rooms: LEASE, why: 'What all instances say of themselves. It changes nothing.' },
  'features/fleet/core/findings': {
    rooms: [...LEASE, 'features/fleet/core/health', 'features/fleet/core/roll', 'features/jobs/core'],
    why: 'What is wrong follows from what was seen: the fleet, its jobs, and Redis. It asks nothing.',
  },
  'features/fleet/core': { rooms: [...LEASE, ...FLEET], why: 'What an operator asks and does, by one object.' },
  'features/fence/core': { rooms: API, why: 'The errors of a fence. They know neither Redis nor a database.' },
  'features/fence/sql': {
    rooms: [...API, 'features/fence/core'],
    why: 'What a guard does in a transaction of the user. It needs no lock and no Redis.',
  },
  'features/fence/redis': {
    rooms: [...STORE, 'redis/script', 'features/fence/core', 'features/fence/sql'],
    packages: ['ioredis'],
    why: 'A fence is a script on a client of the user, or a statement in a transaction of the user.',
  },
  'features/jobs/redis': {
    rooms: [...STORE, 'redis', 'redis/script', 'features/jobs/core'],
    packages: ['ioredis'],
    why: 'The records of jobs stand on one Redis.',
  },

  'features/once/redis': {
    rooms: [...STORE, 'redis', 'redis/script', 'features/once/core'],
    why: 'Kept results stand on one Redis.',
  },

  // Nest around it.
  nest: { rooms: CORE, packages: NEST, why: 'The service and its tokens do not know the decorators or the module.' },
  'nest/log': { rooms: [...CORE, 'nest'], packages: NEST, why: 'What operators read. It does not know the features.' },
  'nest/decorators': {
    rooms: [...CORE, 'nest'],
    packages: NEST,
    why: 'Decorators know the call that Nest makes. They do not know the module, or how Nest answers.',
  },
  'nest/handlers': { rooms: DECORATORS, packages: NEST, why: 'Interceptor and filter do not know the module.' },
  'features/transactions/nest': {
    rooms: [...CORE, 'nest'],
    packages: NEST,
    why: 'Transactions of other packages. It does not know the other features.',
  },
  'features/leader/nest': { rooms: DECORATORS, packages: NEST, why: 'A feature does not know the module.' },
  'features/fleet/nest': {
    rooms: [...CORE, 'nest'],
    packages: [...NEST, '@nestjs/terminus'],
    why: 'The only room that needs @nestjs/terminus. It asks the lock service.',
  },
  'features/once/nest': { rooms: DECORATORS, packages: NEST, why: 'A feature does not know the module.' },
  'features/jobs/nest': {
    rooms: DECORATORS,
    packages: [...NEST, '@nestjs/schedule'],
    why: 'Decorated jobs. With jobs/nest/added the only room that needs @nestjs/schedule.',
  },
  'features/jobs/nest/added': {
    rooms: [...DECORATORS, 'features/jobs/nest'],
    packages: [...NEST, '@nestjs/schedule'],
    why: 'What an operator does with jobs. The decorators do not know it, and neither do they know the module.',
  },
  'nest/module': {
    rooms: [
      ...DECORATORS,
      'nest/handlers',
      'features/leader/nest',
      'features/jobs/nest',
      'features/jobs/nest/added',
      'features/jobs/redis',
      'features/once/nest',
      'features/once/redis',
      'memory',
      'quorum',
      'redis',
      'redis/connection',
      'redis/durability',
      'redis/script',
    ],
    packages: NEST,
    why: 'The module alone knows every backend.',
  },

  // For the tests of applications. No other room imports it, but for the explorer of races.
  'testing/fleet': {
    rooms: [...CORE, 'nest', 'memory'],
    packages: NEST,
    why: 'Applications that compete in one process. It does not know what a test wants of them.',
  },
  'features/jobs/testing': {
    rooms: [...DECORATORS, 'features/jobs/nest', 'features/jobs/nest/added', 'memory', 'testing/fleet'],
    packages: NEST,
    why: 'What a test does with jobs. It does not know the module.',
  },
  'testing/assertions': {
    rooms: [...CORE, 'nest'],
    packages: NEST,
    why: 'What a test expects of locks. It knows neither the store nor the module.',
  },
  'testing/pass-through': {
    rooms: [...CORE, 'nest', 'nest/decorators', 'nest/module', 'memory'],
    packages: NEST,
    why: 'A stand-in for the lock service, on a server in memory.',
  },
  testing: {
    rooms: [...DECORATORS, 'nest/module', 'memory', 'testing/fleet', 'features/jobs/testing', 'testing/assertions'],
    packages: NEST,
    why: 'What a test does with the locks of an application.',
  },

  // Extras have entry points of their own, and nothing else of lib/ imports them.
  'extras/races/schedule': { rooms: ['kernel/util'], why: 'One run of actors in one order. It knows no locks.' },
  'extras/races/search': {
    rooms: ['extras/races/schedule'],
    why: 'Which order comes next. It does not know what the steps do.',
  },
  'extras/races/locks': {
    rooms: [...CORE, 'nest', 'nest/module', 'memory', 'testing/fleet', 'extras/races/schedule'],
    packages: NEST,
    why: 'The locks of a schedule. They do not know how orders are chosen.',
  },
  'extras/races': {
    rooms: [...CORE, 'testing/fleet', 'extras/races/schedule', 'extras/races/search', 'extras/races/locks'],
    why: 'What a test calls to find a race.',
  },
  'extras/telemetry': {
    rooms: EVENTS,
    why: 'What is measured, by any package. It knows events, and nothing that does the work.',
  },
  'extras/telemetry/spans': {
    rooms: [...TRACING, 'extras/telemetry'],
    packages: ['@opentelemetry/api'],
    why: 'Spans are made of what tracers are told.',
  },
  'extras/telemetry/open-telemetry': {
    rooms: [...EVENTS, 'extras/telemetry', 'extras/telemetry/spans'],
    packages: ['@opentelemetry/api'],
    why: 'With the spans, all that needs @opentelemetry/api.',
  },
  'extras/telemetry/prom-client': {
    rooms: [...EVENTS, 'extras/telemetry'],
    packages: ['prom-client'],
    why: 'The only room that needs prom-client.',
  },
  'extras/views': {
    rooms: CORE,
    why: 'What people are shown of a fleet: for the command line and the console, which do not know each other.',
  },
  'extras/console': {
    rooms: [...CORE, 'extras/views'],
    why: 'What the console answers, as types. It does not know who asks.',
  },
  'extras/console/page': { rooms: [], why: 'The page in a browser. It knows the server by its answers alone.' },
  'extras/console/answers': {
    rooms: [...CORE, 'extras/views', 'extras/console', 'extras/console/page'],
    why: 'What is answered to a request of the page. It knows neither Nest nor a server.',
  },
  'extras/console/nest': {
    rooms: [...CORE, 'nest', 'extras/console', 'extras/console/answers'],
    packages: NEST,
    why: 'The console in an application. It asks the lock service, and knows nothing of the module.',
  },
  'extras/cli/frame': {
    rooms: [...COMMAND_LINE, 'features/jobs/redis'],
    packages: ['ioredis'],
    why: 'What every command of the command line needs. It knows no command.',
  },
  'extras/cli/commands': {
    rooms: [...COMMAND_LINE, 'extras/cli/frame'],
    packages: ['ioredis'],
    why: 'What a command does. It needs no Nest.',
  },
  'extras/cli/jobs': {
    rooms: [...COMMAND_LINE, 'extras/cli/frame'],
    why: 'The commands for jobs, and how one is asked to run.',
  },
  'extras/cli/doctor': {
    rooms: [...COMMAND_LINE, 'extras/cli/frame', 'extras/cli/try', 'redis/health'],
    packages: ['ioredis'],
    why: 'What a server says of itself, and what that means for locks.',
  },
  'extras/cli/try': {
    rooms: [...COMMAND_LINE, 'extras/cli/frame', 'testing/fleet'],
    why: 'Clients that use locks like an application, and a checker that knows no locks.',
  },
  'extras/cli/exec': {
    rooms: [...COMMAND_LINE, 'extras/cli/frame'],
    packages: ['ioredis'],
    why: 'A command of the user, in a process of its own, under a lease.',
  },
  'extras/cli/ui': {
    rooms: [...COMMAND_LINE, 'extras/cli/frame', 'extras/cli/doctor', 'extras/console/answers'],
    packages: ['ioredis'],
    why: 'The console on a server of its own, for one person at this machine. It needs no Nest.',
  },
  'extras/cli': {
    rooms: [
      ...COMMAND_LINE,
      'extras/cli/frame',
      'extras/cli/commands',
      'extras/cli/jobs',
      'extras/cli/exec',
      'extras/cli/doctor',
      'extras/cli/ui',
    ],
    packages: ['ioredis'],
    why: 'The table of commands, and the program that runs one of them. Nothing imports it.',
  },
};

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** A folder of lib/, without the folders in it. */
const room = (name) => `^lib/${escaped(name)}/[^/]+$`;

const arrows = Object.entries(ROOMS).map(([name, { rooms, why }]) => ({
  name: `arrows-of-${name.replaceAll('/', '-')}`,
  comment: `lib/${name} may import ${rooms.length ? rooms.map((it) => `lib/${it}`).join(', ') : 'nothing else of lib/'}. ${why}`,
  severity: 'error',
  from: { path: room(name) },
  to: { path: '^lib/', pathNot: [name, ...rooms].map(room) },
}));

const packages = Object.entries(ROOMS).map(([name, { packages: allowed = [] }]) => ({
  name: `packages-of-${name.replaceAll('/', '-')}`,
  comment: `lib/${name} may import node:*${allowed.map((it) => `, ${it}`).join('')}.`,
  severity: 'error',
  from: { path: room(name) },
  to: {
    dependencyTypesNot: ['core'],
    pathNot: ['^lib/', ...allowed.map((it) => `(^|/)node_modules/${escaped(it)}(/|$)`)],
  },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...arrows,
    ...packages,
    {
      name: 'rooms',
      comment: 'Each folder of lib/ has a line in this file that says what it may import.',
      severity: 'error',
      from: { path: '^lib/[^/]+/', pathNot: Object.keys(ROOMS).map(room) },
      to: {},
    },
    {
      name: 'entry-points',
      comment: 'The entry points are for users.',
      severity: 'error',
      from: { path: '^lib/[^/]+/' },
      to: { path: '^lib/[^/]+$' },
    },
    {
      name: 'entries-without-nest',
      comment: 'What writes under a fence need not be an application of Nest.',
      severity: 'error',
      from: { path: '^lib/fence\\.ts$' },
      to: { path: '(^|/)node_modules/(@nestjs|reflect-metadata|rxjs)/', reachable: true },
    },
    {
      name: 'no-cycles',
      comment: 'An import cycle, types included: neither file can be read without the other.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { circular: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
