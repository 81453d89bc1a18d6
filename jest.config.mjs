// Jest runs TypeScript as ES modules, because Nest 12 is ESM only. Needs NODE_OPTIONS=--experimental-vm-modules.
import { COMPILER_OPTIONS } from './test/support/process/compile-typescript.mjs';

/** Rooms whose tests start servers. All other tests of lib/ need none. */
const WITH_SERVERS = [
  'test/{extras/cli,features/*,quorum}/servers',
  'test/redis/{faults,leases,messages,processes,queue,rights,topologies,versions,wire}',
];

/** Rooms whose tests start applications of Nest. */
const WITH_NEST = ['test/nest', 'test/features/*/nest'];

/** @type {import('jest').Config} */
const shared = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^nestjs-redis-lock$': '<rootDir>/lib/index.ts',
    '^nestjs-redis-lock/([\\w-]+)$': '<rootDir>/lib/$1.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  setupFiles: ['<rootDir>/test/support/process/forget-contexts.mjs'],
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/test/package/consumers'],
  transform: {
    '^.+\\.ts$': ['@swc/jest', COMPILER_OPTIONS],
  },
};

const root = import.meta.dirname ?? process.cwd();

const testsIn = (folder) => `${root}/${folder}/**/*.test.ts`;

const project = (name, ...testMatch) => ({
  ...shared,
  displayName: name,
  rootDir: root,
  testMatch,
});

export default {
  projects: [
    project(
      'unit',
      testsIn('test/{contract,extras,features,kernel,quorum,redis,testing,tools}'),
      ...[...WITH_SERVERS, ...WITH_NEST, 'test/extras/console/browser'].map((folder) => `!${testsIn(folder)}`),
    ),
    project('stores', testsIn('test/stores')),
    project('servers', ...WITH_SERVERS.map(testsIn)),
    project('nest', ...WITH_NEST.map(testsIn)),
    {
      ...project('sample-app', testsIn('sample-app/test')),
      globalSetup: '<rootDir>/sample-app/test/build-sample-app.mjs',
    },
    project('docs', testsIn('test/docs'), `!${testsIn('test/docs/{site,testing}')}`),
    // The tests that docs/guide/testing.md shows.
    project('testing-page', testsIn('test/docs/testing')),
    // What only some applications have beside the lock module: installed from lock files of their own.
    {
      ...project('stacks', testsIn('test/stacks')),
      globalSetup: '<rootDir>/test/stacks/install.mjs',
      // Nest looks from its own place for the packages of gateways and microservices that an application has.
      modulePaths: ['gateways', 'microservices'].map((stack) => `<rootDir>/test/stacks/${stack}/node_modules`),
    },
    // Builds the site, and opens it in a browser.
    {
      ...project('site', testsIn('test/docs/site')),
      globalSetup: '<rootDir>/test/docs/site/install-packages.mjs',
    },
    // The page of the console, in a browser.
    project('browser', testsIn('test/extras/console/browser')),
    project('chaos', testsIn('tools/chaos')),
  ],
  testSequencer: '<rootDir>/test/support/process/stores-first.mjs',
  // How long a hanging test takes. What a test waits for has bounds of its own, which say what did not happen.
  testTimeout: { long: 1_200_000, all: 300_000 }[process.env.TEST_SPEED] ?? 60_000,
};
