import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

/** What the figures were seen on. */
export function machine(): string {
  const { stdout } = spawnSync(process.env['REDIS_SERVER_BIN'] ?? 'redis-server', ['--version'], { encoding: 'utf8' });
  const redis = /v=([\d.]+)/.exec(stdout ?? '')?.[1] ?? 'of a container';
  return `${cpus().length} cores, Node ${process.versions.node}, Redis ${redis}`;
}
