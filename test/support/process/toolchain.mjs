// Programs that tests need beside Node.
import { spawnSync } from 'node:child_process';

/**
 * @typedef {object} Tool
 * @property {string} name in words
 * @property {string[]} programs any of these will do
 * @property {string} flag with which they do nothing
 * @property {string[]} packages of Debian
 * @property {string[]} otherwise how to install it elsewhere, a line each
 */

/** @type {Tool} */
export const C_COMPILER = {
  name: 'a C compiler',
  programs: ['gcc', 'cc', 'clang'],
  flag: '--version',
  packages: ['gcc', 'libc6-dev'],
  otherwise: ['macOS           xcode-select --install'],
};

/** @type {Tool} */
export const OPENSSL = {
  name: 'openssl',
  programs: ['openssl'],
  flag: 'version',
  packages: ['openssl'],
  otherwise: ['macOS           brew install openssl'],
};

/** @type {Tool} */
export const CURL = {
  name: 'curl',
  programs: ['curl'],
  flag: '--version',
  packages: ['curl'],
  otherwise: ['macOS           brew install curl'],
};

/** @type {Tool} */
export const BROWSER = {
  name: 'Chromium',
  programs: [
    'chromium',
    'chromium-browser',
    'google-chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  ],
  flag: '--version',
  packages: ['chromium'],
  otherwise: ['macOS           brew install --cask google-chrome'],
};

/** Debian has no server on PATH, because it can have several versions. @type {Tool} */
export const POSTGRES = {
  name: 'PostgreSQL',
  programs: ['postgres', ...[18, 17, 16, 15, 14, 13].map((version) => `/usr/lib/postgresql/${version}/bin/postgres`)],
  flag: '--version',
  packages: ['postgresql'],
  otherwise: ['macOS           brew install postgresql'],
};

/** @type {Tool} */
export const MARIADB = {
  name: 'MariaDB',
  programs: ['mariadbd', '/usr/sbin/mariadbd'],
  flag: '--version',
  packages: ['mariadb-server-core', 'mariadb-client-core'],
  otherwise: ['macOS           brew install mariadb'],
};

/** @type {Tool} */
export const PROMETHEUS = {
  name: 'Prometheus',
  programs: ['prometheus'],
  flag: '--version',
  packages: ['prometheus'],
  otherwise: ['macOS           brew install prometheus'],
};

/** @type {Tool} */
export const PROMTOOL = { ...PROMETHEUS, name: 'promtool', programs: ['promtool'] };

/**
 * The program for each tool, in their order.
 *
 * @param {readonly Tool[]} tools
 * @param {Record<string, string | undefined>} [env]
 * @throws Error with the missing tool and how to install it: a test installs nothing. `.ci/all` does
 */
export function findTools(tools, env = process.env) {
  const works = (program, flag) => spawnSync(program, [flag], { stdio: 'ignore', env }).status === 0;
  const found = tools.map(({ programs, flag }) => programs.find((program) => works(program, flag)));
  const missing = tools.filter((_tool, index) => found[index] === undefined);
  if (missing.length === 0) return found;
  throw new Error(
    [
      `Not found: ${missing.map(({ name }) => name).join(' and ')}. To install:`,
      `  Debian, Ubuntu  sudo apt-get install ${[...new Set(missing.flatMap(({ packages }) => packages))].join(' ')}`,
      ...new Set(missing.flatMap(({ otherwise }) => otherwise.map((line) => `  ${line}`))),
    ].join('\n'),
  );
}
