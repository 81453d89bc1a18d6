// Finds programs that a test needs, or installs them with apt-get where that needs no question: as root, or by a sudo that asks for
// no password (CI, containers).
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * @typedef {object} Tool
 * @property {string} name in words
 * @property {string[]} programs any of these will do
 * @property {string} flag with which they do nothing
 * @property {string[]} packages of Debian
 * @property {string} [service] which its package would start, and which no test wants
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

/** Its package recommends an exporter that listens on every interface: nothing that is recommended is installed. @type {Tool} */
export const PROMETHEUS = {
  name: 'Prometheus',
  programs: ['prometheus'],
  flag: '--version',
  packages: ['prometheus'],
  service: 'prometheus',
  otherwise: ['macOS           brew install prometheus'],
};

/** @type {Tool} */
export const PROMTOOL = { ...PROMETHEUS, name: 'promtool', programs: ['promtool'] };

/**
 * Gives the program to use for each tool, in their order.
 * @param {Tool[]} tools
 * @param {Record<string, string | undefined>} [env]
 * @returns {string[]}
 * @throws Error that says what is missing and how to install it
 */
export function findTools(tools, env = process.env) {
  const works = (program, ...args) => spawnSync(program, args, { stdio: 'ignore', env }).status === 0;
  const find = ({ programs, flag }) => programs.find((program) => works(program, flag));
  if (!tools.every(find) && works('apt-get', '--version')) {
    const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
    if (asRoot.length === 0 || works(...asRoot, 'true')) install(tools, asRoot, env);
  }
  const missing = tools.filter((tool) => !find(tool));
  if (missing.length === 0) return tools.map(find);
  throw new Error(
    [
      `Not found: ${missing.map(({ name }) => name).join(' and ')}. To install:`,
      `  Debian, Ubuntu  sudo apt-get install ${packagesOf(missing).join(' ')}`,
      ...new Set(missing.flatMap(({ otherwise }) => otherwise.map((line) => `  ${line}`))),
    ].join('\n'),
  );
}

function packagesOf(tools) {
  return [...new Set(tools.flatMap(({ packages }) => packages))];
}

// Other tests of this run may install as well.
const PATIENT = ['-o', 'DPkg::Lock::Timeout=300'];
// What keeps a package from starting its service: sysvinit looks at RUNLEVEL, systemd at SYSTEMD_OFFLINE.
const APT_ENV = ['DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'SYSTEMD_OFFLINE=1'];

function install(tools, asRoot, env) {
  const packages = packagesOf(tools);
  console.log(`Installing ${packages.join(', ')} with apt-get`);
  const run = (...command) => {
    const [program, ...args] = [...asRoot, ...command];
    return spawnSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0;
  };
  const services = [...new Set(tools.flatMap(({ service }) => service ?? []))];
  const args = services.length > 0 ? ['--no-install-recommends'] : [];
  const installPackages = () => run('env', ...APT_ENV, 'apt-get', 'install', '-y', ...PATIENT, ...args, ...packages);
  // The package lists may be missing or out of date.
  if (!installPackages() && run('env', ...APT_ENV, 'apt-get', 'update')) installPackages();
  // Not now, and not after the next start of the machine.
  if (existsSync('/run/systemd/system')) for (const service of services) run('systemctl', 'disable', '--now', service);
}
