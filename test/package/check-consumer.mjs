import { cp } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { npm } from './npm.mjs';

const TEST_MS = 60_000;

/** One fresh project: installs the tarball into it, compiles it (which checks the types), runs it. */
export async function checkConsumer({ name, parts }, { folder, tarball, redisUrl }) {
  for (const part of [...parts, name]) await copy(part, folder);
  const env = { REDIS_URL: redisUrl, KEY_PREFIX: name };
  const steps = {
    install: () => npm(['install', tarball, '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder }),
    compile: () => npm(['run', 'compile'], { cwd: folder }),
    test: () => npm(['test'], { cwd: folder, env, timeoutMs: TEST_MS }),
  };
  for (const [step, run] of Object.entries(steps)) {
    const startedAt = Date.now();
    const { code, output } = await run();
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
    console.log(`  ${name}: ${step} ${code === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
    if (code !== 0) {
      console.log(output);
      return false;
    }
  }
  return true;
}

async function copy(name, folder) {
  await cp(fileURLToPath(new URL(`consumers/${name}`, import.meta.url)), folder, { recursive: true });
}
