// Installs redis-server with the machine's package manager, if that needs no password.
import { answers, findOnPath } from './programs.mjs';
import { runStep, say } from './step.mjs';

// Debian's package would start a service on port 6379. It is not ours and we never use it: ask the package's scripts
// not to start it, by what sysvinit (RUNLEVEL) and systemd (SYSTEMD_OFFLINE) each look at.
const APT_ENV = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1', SYSTEMD_OFFLINE: '1' };

/** @returns {Promise<string[]>} why it could not, for each package manager; empty when redis-server was installed */
export async function installRedis(env) {
  const obstacles = [];
  for (const install of [installWithApt, installWithBrew]) {
    const obstacle = await install(env).catch((error) => error.message);
    if (obstacle === undefined) return [];
    obstacles.push(obstacle);
  }
  return obstacles;
}

async function installWithApt(env) {
  if (!(await findOnPath('apt-get', env))) return 'apt-get: not on this machine';
  const asRoot = await rootPrefix(env);
  if (asRoot === undefined) return 'apt-get: needs root or a sudo that asks for no password';
  const settings = Object.entries(APT_ENV).map(([name, value]) => `${name}=${value}`);
  const apt = (title, ...args) => {
    const [command, ...rest] = [...asRoot, 'env', ...settings, 'apt-get', ...args];
    return runStep(title, command, rest, { env });
  };
  say('  redis-server is not installed: installing the package of this system');
  await apt('Reading the package lists (apt-get update)', 'update');
  await apt('Installing redis-server (apt-get install)', 'install', '-y', '--no-install-recommends', 'redis-server');
}

async function installWithBrew(env) {
  if (!(await findOnPath('brew', env))) return 'brew: not on this machine';
  await runStep('Installing redis (brew install)', 'brew', ['install', 'redis'], { env });
}

/** Returns the prefix of a command to run it as root without a prompt; undefined if there is none. */
async function rootPrefix(env) {
  if (process.getuid?.() === 0) return [];
  const maySudo = await answers('sudo', ['-n', 'true'], { env });
  return maySudo ? ['sudo', '-n'] : undefined;
}
