// The suites that .ci/run leaves out where no change can break them. Every other suite runs for each change.

/** The folders of test/stacks: applications with packages of their own. */
export const STACKS = [
  'bullmq',
  'bullmq-nest11',
  'commander',
  'contexts',
  'databases',
  'events',
  'gateways',
  'graphql',
  'graphql-nest11',
  'ioredis',
  'messages-nest11',
  'microservices',
  'migration',
  'migration-guides',
  'migration-nest11',
  'tracing',
];

/** The suite of a folder of test/stacks. */
export const stack = (folder) => `stack ${folder}`;

/** The folders of test/redis that start servers. */
export const SERVERS = [
  'faults',
  'fleet',
  'jobs',
  'leases',
  'messages',
  'processes',
  'queue',
  'rights',
  'topologies',
  'versions',
  'wire',
];

/** The suite of a folder of test/redis. */
export const onRedis = (folder) => `redis ${folder}`;

const ofNest = (name) => `test/nest/${name}.slow.test.ts`;

/**
 * Each suite, and where its tests are: files, or folders, which end with a slash. One without tests of Jest is a command of its own:
 * see scripts/ci/run.mjs.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const SUITES = {
  /** `npm run model`: every state of the model of the lock protocol, and mutants of it. */
  model: [],
  /** The contract of a store on Sentinel, on a cluster, with `durability`, and on a quorum of Redis servers. */
  contract: ['cluster', 'durable', 'quorum-on-redis', 'sentinel'].map((name) => `test/stores/${name}.slow.test.ts`),
  /** What Redis does, by folder. Each but the one of quorums starts servers, and some break them. */
  ...Object.fromEntries(SERVERS.map((folder) => [onRedis(folder), [`test/redis/${folder}/`]])),
  'quorum servers': ['test/quorum/servers/'],
  'command line': ['test/cli/servers/'],
  /** Applications of Nest as processes of their own. */
  processes: [
    'leader/leader-processes',
    'lifecycle/boot-process',
    'lifecycle/closed-process',
    'lifecycle/leaks-process',
    'lifecycle/shutdown-process',
    'secrets/secrets-in-trouble',
    'secrets/secrets-process',
  ].map(ofNest),
  'job processes': ['schedule/cron-processes', 'schedule/interval-processes'].map(ofNest),
  /** What an editor and the compiler say, and all code of the docs. */
  editor: [ofNest('types/types')],
  snippets: [
    ...['fencing-sql', 'snippets', 'walk'].map((name) => `test/docs/${name}.slow.test.ts`),
    'test/testing/contract/node-test.slow.test.ts',
  ],
  /** Instances of the sample app, while Redis and they themselves are killed. */
  demo: ['demo', 'faults'].map((name) => `sample-app/test/${name}.slow.test.ts`),
  'sample app': [
    ...['catalogue', 'exports', 'imports', 'jobs', 'mails', 'picture', 'shop', 'tutorial'].map(
      (name) => `sample-app/test/${name}.test.ts`,
    ),
    ...['operators', 'prometheus', 'units'].map((folder) => `sample-app/test/${folder}/`),
  ],
  /** Of all orders of the race explorer, those that it leaves out. */
  races: ['test/testing/races/pruning.slow.test.ts'],
  /** Each mutant of the library is caught. */
  'chaos mutants': ['tools/chaos/mutants/hunt.test.ts'],
  'chaos cron': ['tools/chaos/cron/'],
  'chaos names': ['tools/chaos/names/'],
  'chaos leaks': ['tools/chaos/leaks/'],
  'chaos storms': ['tools/chaos/storms/', 'tools/chaos/storms-run.test.ts'],
  'chaos topologies': ['tools/chaos/topologies-run.test.ts'],
  ...Object.fromEntries(STACKS.map((folder) => [stack(folder), [`test/stacks/${folder}/`]])),
  /** Compiles all stacks, so it installs all of them. */
  'stack types': ['test/stacks/types.slow.test.ts'],
  /** The page of the console in a browser. */
  browser: ['test/console/browser/'],
  /** The site, built and opened in a browser. */
  site: ['test/docs/site/'],
  /** The packed package in every consumer of test/package. One of them runs for each change. */
  consumers: [],
};

/** Every suite that can be left out. */
export const ALL = Object.keys(SUITES);

/**
 * The suite that has the test file, or `undefined` where it runs for each change.
 *
 * @param {string} file
 */
export function suiteOf(file) {
  return ALL.find((suite) =>
    SUITES[suite].some((tests) => (tests.endsWith('/') ? file.startsWith(tests) : file === tests)),
  );
}

/**
 * Patterns for Jest of the test files that belong to these suites.
 *
 * @param {readonly string[]} suites
 * @returns {string[]}
 */
export function testPatterns(suites) {
  return suites
    .flatMap((suite) => SUITES[suite])
    .map((tests) => `/${tests.replaceAll('.', '\\.')}${tests.endsWith('/') ? '' : '$'}`);
}
