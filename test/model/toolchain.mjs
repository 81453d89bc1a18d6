// Finds spin and a C compiler, or installs them where that needs no question: as root with apt-get (CI, containers).
import { spawnSync } from 'node:child_process';

const works = (program, flag) => spawnSync(program, [flag], { stdio: 'ignore' }).status === 0;
const find = () => ({
  spin: works('spin', '-V') ? 'spin' : undefined,
  compiler: ['gcc', 'cc', 'clang'].find((program) => works(program, '--version')),
});

export function findToolchain() {
  let tools = find();
  if (tools.spin && tools.compiler) return tools;
  if (process.getuid?.() === 0 && works('apt-get', '--version')) {
    console.log('Installing spin and gcc with apt-get');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const aptGet = (...args) =>
      spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0;
    const install = () => aptGet('install', '-y', 'spin', 'gcc', 'libc6-dev');
    // The package lists may be missing or out of date.
    if (!install() && aptGet('update')) install();
    tools = find();
    if (tools.spin && tools.compiler) return tools;
  }
  throw new Error(
    [
      `Not found: ${[tools.spin ? '' : 'spin', tools.compiler ? '' : 'a C compiler'].filter(Boolean).join(' and ')}. To install:`,
      '  Debian, Ubuntu  sudo apt-get install spin gcc libc6-dev',
      '  macOS           brew install spin && xcode-select --install',
      '  elsewhere       https://spinroot.com/spin/Man/README.html',
    ].join('\n'),
  );
}
