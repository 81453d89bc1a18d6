import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { ROOT } from '../guides.js';

const BUILD = fileURLToPath(new URL('../../../tools/docs/build.mjs', import.meta.url));

/** The site as `npm run docs -- --serve` builds, checks and serves it, or as `npm run docs:dev` serves it. */
export interface SiteServer {
  /** Without a slash at the end. */
  readonly url: string;
  /** The output of the build and the server. */
  output(): string;
  stop(): Promise<void>;
}

/**
 * @param base the path that the site is served under
 * @throws Error with the output of the build, when it fails
 */
export async function serveSite({ dev = false, base = '/' } = {}): Promise<SiteServer> {
  const port = await findFreePort();
  const child = spawn(process.execPath, [BUILD, dev ? '--dev' : '--serve', '--port', String(port)], {
    cwd: ROOT,
    env: { ...process.env, NODE_OPTIONS: '', DOCS_BASE: base },
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
        if (output.includes(dev ? `localhost:${port}` : 'Built site served at')) resolve();
      });
    }
  });
  const failed = exited.then(() => {
    throw new Error(`npm run docs has failed:\n${output}`);
  });
  await Promise.race([served, failed]);
  failed.catch(() => {});
  return {
    url: `http://localhost:${port}${base.replace(/\/$/, '')}`,
    output: () => output,
    async stop() {
      process.kill(-child.pid!);
      await exited;
    },
  };
}
