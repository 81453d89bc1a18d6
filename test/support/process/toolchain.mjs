// Finds programs that a test needs, or installs them where that needs no question: as root with apt-get (CI, containers).
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
  packages: ['mariadb-server-core'],
  otherwise: ['macOS           brew install mariadb'],
};

/**
 * Gives the program to use for each tool, in their order.
 * @param {Tool[]} tools
 * @param {Record<string, string | undefined>} [env]
 * @returns {string[]}
 * @throws Error that says what is missing and how to install it
 */
export function findTools(tools, env = process.env) {
  const works = (program, flag) => spawnSync(program, [flag], { stdio: 'ignore', env }).status === 0;
  const find = ({ programs, flag }) => programs.find((program) => works(program, flag));
  if (!tools.every(find) && process.getuid?.() === 0 && works('apt-get', '--version')) {
    install(
      tools.flatMap(({ packages }) => packages),
      env,
    );
  }
  const missing = tools.filter((tool) => !find(tool));
  if (missing.length === 0) return tools.map(find);
  throw new Error(
    [
      `Not found: ${missing.map(({ name }) => name).join(' and ')}. To install:`,
      `  Debian, Ubuntu  sudo apt-get install ${missing.flatMap(({ packages }) => packages).join(' ')}`,
      ...missing.flatMap(({ otherwise }) => otherwise.map((line) => `  ${line}`)),
    ].join('\n'),
  );
}

function install(packages, env) {
  console.log(`Installing ${packages.join(', ')} with apt-get`);
  const aptGet = (...args) =>
    spawnSync('apt-get', args, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0;
  const succeeded = aptGet('install', '-y', ...packages);
  // The package lists may be missing or out of date.
  if (!succeeded && aptGet('update')) aptGet('install', '-y', ...packages);
}
