// Jest runs TypeScript as ES modules, because Nest 12 is ESM only. Needs NODE_OPTIONS=--experimental-vm-modules.
import { COMPILER_OPTIONS } from './test/support/process/compile-typescript.mjs';

/** @type {import('jest').Config} */
const shared = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^nestjs-redis-lock$': '<rootDir>/lib/index.ts',
    '^nestjs-redis-lock/schedule$': '<rootDir>/lib/schedule.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/test/package/consumers'],
  transform: {
    '^.+\\.ts$': ['@swc/jest', COMPILER_OPTIONS],
  },
};

const project = (name, ...folders) => ({
  ...shared,
  displayName: name,
  rootDir: import.meta.dirname ?? process.cwd(),
  testMatch: folders.map((folder) => `<rootDir>/${folder}/**/*.test.ts`),
});

export default {
  projects: [
    project('unit', 'test/unit'),
    project('stores', 'test/stores'),
    project('integration', 'test/integration'),
    project('nest', 'test/nest'),
    { ...project('sample-app', 'sample-app/test'), globalSetup: '<rootDir>/sample-app/test/build-sample-app.mjs' },
    project('docs', 'test/docs'),
    project('chaos', 'tools/chaos'),
  ],
  // How long a hanging test takes. What a test waits for has bounds of its own, which say what did not happen.
  testTimeout: 60_000,
};
