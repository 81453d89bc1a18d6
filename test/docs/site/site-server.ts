import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { ROOT } from '../guides.js';

const BUILD = fileURLToPath(new URL('../../../tools/docs/build.mjs', import.meta.url));

/** The site as `npm run docs -- --serve` builds, checks and serves it. */
export interface SiteServer {
  /** Without a slash at the end. */
  readonly url: string;
  stop(): Promise<void>;
}

/** @throws Error with the output of the build, when it fails */
export async function serveSite(): Promise<SiteServer> {
  const port = await findFreePort();
  const { DOCS_BASE: _base, ...env } = process.env;
  const child = spawn(process.execPath, [BUILD, '--serve', '--port', String(port)], {
    cwd: ROOT,
    env: { ...env, NODE_OPTIONS: '' },
    // A group of its own: the build starts other programs, which are to end with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const exited = once(child, 'exit');
  const served = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes('Built site served at')) resolve();
      });
    }
  });
  const failed = exited.then(() => {
    throw new Error(`npm run docs has failed:\n${output}`);
  });
  await Promise.race([served, failed]);
  failed.catch(() => {});
  return {
    url: `http://localhost:${port}`,
    async stop() {
      process.kill(-child.pid!);
      await exited;
    },
  };
}
