import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { programOf } from '../../support/process/program.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const main = programOf(new URL('commander-main.ts', import.meta.url));

describe('a command of nest-commander', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);

  async function run(url: string) {
    const env = { ...process.env, NODE_OPTIONS: '', REDIS_URL: url };
    const child = spawn(process.execPath, [main, 'reindex', 'north'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [said, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code: child.exitCode, said, errors };
  }

  it('runs under its lock, and then the process ends', async () => {
    const said = 'north is indexed under index:north\nis through\n';
    expect(await run(redis().url)).toEqual({ code: 0, said, errors: '' });
    expect(await admin().exists('lock:{index:north}')).toBe(0);
  });

  it('ends with 1 and the reason if Redis is down', async () => {
    const { code, errors } = await run('redis://127.0.0.1:1');
    expect(code).toBe(1);
    expect(errors).toContain('Redis could not acquire "index:north"');
  });
});
