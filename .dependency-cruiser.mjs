/**
 * Which room of lib/ may import which. `npm run lint` checks every import, type-only ones included; a wrong arrow or a circle fails it.
 * test/tools/arrows.slow.test.ts proves that each arrow which is not in this table is refused.
 */

const API = ['core/api', 'core/util'];
const EVENTS = [...API, 'core/events'];
const TRACING = [...EVENTS, 'core/tracing'];
const STORE = [...TRACING, 'core/store'];
const PLACES = [...STORE, 'core/places'];
const HOLDING = [...PLACES, 'core/deadlocks', 'core/holding'];
const ACQUIRING = [...HOLDING, 'core/acquiring'];
const LEASE = [...ACQUIRING, 'core/lease'];
const FEATURES = [
  'core/contention',
  'core/explain',
  'core/semaphore',
  'core/leader',
  'core/singleton',
  'core/jobs',
  'core/latch',
  'core/watch',
  'core/health',
  'core/fleet',
];
const CORE = [...LEASE, ...FEATURES, 'core'];
const DECORATORS = [...CORE, 'nest', 'nest/log', 'nest/request', 'nest/decorators'];

const COMMAND_LINE = [...CORE, 'views', 'redis', 'redis/connection', 'redis/script'];

const NEST = ['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'];

/**
 * Each room, what it may import beside itself and node:*, and which packages. A room is a folder without the folders in it.
 *
 * @type {Record<string, { rooms: readonly string[], packages?: readonly string[], why: string }>}
 */
export const ROOMS = {
  'core/util': { rooms: [], why: 'Time, chance and waiting know nothing about locks.' },
  'core/api': { rooms: ['core/util'], why: 'What users name depends on nothing that does the work.' },
  'core/events': { rooms: API, why: 'What is reported does not know what reports it, or who listens.' },
  'core/tracing': { rooms: EVENTS, why: 'What follows a lock does not know what it follows, or who listens.' },
  'core/store': { rooms: TRACING, why: 'The ports to a store do not know who asks.' },
  'core/places': {
    rooms: STORE,
    why: 'Waiting in the queue of a store does not know which call waits, or what it holds then.',
  },
  'core/deadlocks': {
    rooms: API,
    why: 'Which calls wait for each other. It does not know how they wait, or who is asked.',
  },
  'core/holding': {
    rooms: [...PLACES, 'core/deadlocks'],
    why: 'What this process holds does not know how it was acquired.',
  },
  'core/acquiring': { rooms: HOLDING, why: 'Waiting ends with a hold; what the holder does with it comes later.' },
  'core/lease': { rooms: ACQUIRING, why: 'A lease is what the features are built on.' },
  'core/semaphore': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'core/leader': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'core/contention': {
    rooms: EVENTS,
    why: 'Which group waits for which follows from events. It does not know the locks.',
  },
  'core/explain': { rooms: LEASE, why: 'What is seen of a lock is explained. It changes nothing.' },
  core: { rooms: [...LEASE, ...FEATURES], why: 'The lock client is the door to leases and to every feature.' },
  'core/singleton': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'core/jobs': { rooms: LEASE, why: 'What is due and what was missed. It does not know how a job is run.' },
  'core/latch': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'core/watch': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'core/health': { rooms: LEASE, why: 'A feature hangs below the lock client.' },
  'core/fleet': { rooms: LEASE, why: 'What all instances say of themselves. It changes nothing.' },
  memory: {
    rooms: [...STORE, 'redis', 'redis/script'],
    why: 'A Redis in memory, for the stores that run scripts. It needs no ioredis: see build.mjs.',
  },
  quorum: { rooms: STORE, why: 'The backends do not know each other.' },
  'redis/lua': { rooms: [], why: 'Lua only.' },
  'redis/script': {
    rooms: STORE,
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
  'redis/fence': {
    rooms: [...STORE, 'redis/script', 'sql'],
    packages: ['ioredis'],
    why: 'A fence is a script on a client of the user, or a statement in a transaction of the user.',
  },
  'redis/health': {
    rooms: [...STORE, 'redis/script', 'redis/connection'],
    packages: ['ioredis'],
    why: 'What a server answers to a probe. It does not know who asks.',
  },
  redis: {
    rooms: [...STORE, 'redis/script', 'redis/connection', 'redis/durability', 'redis/topology', 'redis/health'],
    packages: ['ioredis'],
    why: 'The stores stand on one Redis, and implement the ports of core.',
  },
  sql: { rooms: API, why: 'What a guard does in a transaction of the user. It needs no lock and no Redis.' },
  telemetry: {
    rooms: EVENTS,
    why: 'What is measured, by any package. It knows events, and nothing that does the work.',
  },
  'telemetry/spans': {
    rooms: [...TRACING, 'telemetry'],
    packages: ['@opentelemetry/api'],
    why: 'Spans are made of what tracers are told.',
  },
  'telemetry/open-telemetry': {
    rooms: [...EVENTS, 'telemetry', 'telemetry/spans'],
    packages: ['@opentelemetry/api'],
    why: 'With the spans, all that needs @opentelemetry/api.',
  },
  'telemetry/prom-client': {
    rooms: [...EVENTS, 'telemetry'],
    packages: ['prom-client'],
    why: 'The only room that needs prom-client.',
  },
  nest: { rooms: CORE, packages: NEST, why: 'The service and its tokens do not know the decorators or the module.' },
  views: {
    rooms: CORE,
    why: 'What people are shown of a fleet: for the command line and the console, which do not know each other.',
  },
  console: { rooms: CORE, why: 'What the console answers, as types. It does not know who asks.' },
  'console/answers': {
    rooms: [...CORE, 'views', 'console', 'console/page'],
    why: 'What is answered to a request of the page. It knows neither Nest nor a server.',
  },
  'console/page': { rooms: [], why: 'The page in a browser. It knows the server by its answers alone.' },
  'cli/frame': {
    rooms: COMMAND_LINE,
    packages: ['ioredis'],
    why: 'What every command of the command line needs. It knows no command.',
  },
  'cli/commands': {
    rooms: [...COMMAND_LINE, 'cli/frame'],
    packages: ['ioredis'],
    why: 'What a command does. It needs no Nest.',
  },
  'cli/doctor': {
    rooms: [...COMMAND_LINE, 'cli/frame', 'redis/health'],
    packages: ['ioredis'],
    why: 'What a server says of itself, and what that means for locks.',
  },
  'cli/exec': {
    rooms: [...COMMAND_LINE, 'cli/frame'],
    packages: ['ioredis'],
    why: 'A command of the user, in a process of its own, under a lease.',
  },
  'cli/ui': {
    rooms: [...COMMAND_LINE, 'cli/frame', 'cli/doctor', 'console/answers'],
    packages: ['ioredis'],
    why: 'The console on a server of its own, for one person at this machine. It needs no Nest.',
  },
  cli: {
    rooms: [...COMMAND_LINE, 'cli/frame', 'cli/commands', 'cli/exec', 'cli/doctor', 'cli/ui'],
    packages: ['ioredis'],
    why: 'The table of commands, and the program that runs one of them. Nothing imports it.',
  },
  health: {
    rooms: [...CORE, 'nest'],
    packages: [...NEST, '@nestjs/terminus'],
    why: 'The only room that needs @nestjs/terminus. It asks the lock service.',
  },
  'console/nest': {
    rooms: [...CORE, 'nest', 'console', 'console/answers'],
    packages: NEST,
    why: 'The console in an application. It asks the lock service, and knows nothing of the module.',
  },
  'nest/log': { rooms: [...CORE, 'nest'], packages: NEST, why: 'What operators read. It does not know the features.' },
  'nest/request': { rooms: [...CORE, 'nest'], packages: NEST, why: 'The call that Nest is serving.' },
  'nest/transactions': {
    rooms: [...CORE, 'nest'],
    packages: NEST,
    why: 'Transactions of other packages. It does not know the features.',
  },
  'nest/decorators': {
    rooms: [...CORE, 'nest', 'nest/request'],
    packages: NEST,
    why: 'Decorators do not know the module.',
  },
  'nest/handlers': { rooms: DECORATORS, packages: NEST, why: 'Interceptor and filter do not know the module.' },
  'nest/leader': { rooms: DECORATORS, packages: NEST, why: 'A feature does not know the module.' },
  'nest/schedule': {
    rooms: DECORATORS,
    packages: [...NEST, '@nestjs/schedule'],
    why: 'Decorated jobs. With nest/jobs the only room that needs @nestjs/schedule.',
  },
  'nest/jobs': {
    rooms: [...DECORATORS, 'nest/schedule'],
    packages: [...NEST, '@nestjs/schedule'],
    why: 'What an operator does with jobs. The decorators do not know it, and neither do they know the module.',
  },
  testing: {
    rooms: [...DECORATORS, 'nest/module', 'memory', 'testing/fleet', 'testing/jobs', 'testing/assertions'],
    packages: NEST,
    why: 'What a test does with the locks of an application.',
  },
  'testing/fleet': {
    rooms: [...CORE, 'nest', 'memory'],
    packages: NEST,
    why: 'Applications that compete in one process. It does not know what a test wants of them.',
  },
  'testing/jobs': {
    rooms: [...DECORATORS, 'nest/schedule', 'nest/jobs', 'memory', 'testing/fleet'],
    packages: NEST,
    why: 'What a test does with jobs. It does not know the module.',
  },
  'nest/module': {
    rooms: [
      ...DECORATORS,
      'nest/handlers',
      'nest/leader',
      'nest/schedule',
      'nest/jobs',
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
  'testing/races/schedule': { rooms: ['core/util'], why: 'One run of actors in one order. It knows no locks.' },
  'testing/races/search': {
    rooms: ['testing/races/schedule'],
    why: 'Which order comes next. It does not know what the steps do.',
  },
  'testing/races/locks': {
    rooms: [...CORE, 'nest', 'nest/module', 'memory', 'testing/fleet', 'testing/races/schedule'],
    packages: NEST,
    why: 'The locks of a schedule. They do not know how orders are chosen.',
  },
  'testing/races': {
    rooms: [...CORE, 'testing/fleet', 'testing/races/schedule', 'testing/races/search', 'testing/races/locks'],
    why: 'What a test calls to find a race.',
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
      comment: 'What writes under a fence, or is a store, need not be an application of Nest.',
      severity: 'error',
      from: { path: '^lib/(fence|store)\\.ts$' },
      to: { path: '(^|/)node_modules/(@nestjs|reflect-metadata|rxjs)/', reachable: true },
    },
    {
      name: 'no-circles',
      comment: 'A circle of imports, types included: neither file can be read without the other.',
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
