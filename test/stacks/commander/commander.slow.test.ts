import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { programOf } from '../../support/process/program.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const main = [programOf(new URL('commander-main.ts', import.meta.url))];

describe('nest-commander, and an application without a server', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const children: ChildProcess[] = [];
  afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));

  /**
   * @param signalAt what the process has printed when it gets a SIGTERM
   * @param waiting what must be so before, too
   */
  async function run(args: string, { signalAt = '', waiting = async () => {}, url = redis().url } = {}) {
    const env = { ...process.env, NODE_OPTIONS: '', REDIS_URL: url };
    const child = spawn(process.execPath, [...main, ...args.split(' ')], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    let said = '';
    const told = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk: Buffer) => {
        said += String(chunk);
        if (signalAt && said.includes(signalAt)) resolve();
      });
    });
    void told.then(waiting).then(() => child.kill('SIGTERM'));
    // Not its exit: by then not all of what it has said may be read.
    const [errors] = await Promise.all([text(child.stderr), once(child, 'close')]);
    return { end: child.signalCode ?? child.exitCode, said, errors };
  }

  it('a command runs under its lock, and the process ends', async () => {
    const [own, theirs] = await Promise.all([run('reindex north'), run('run reindex south')]);
    expect(own).toEqual({ end: 0, said: 'north is indexed under index:north\nis through\n', errors: '' });
    expect(theirs).toEqual({ end: 0, said: 'south is indexed under index:south\nis through\n', errors: '' });
    expect(await admin().exists('lock:{index:north}', 'lock:{index:south}')).toBe(0);
  });

  it('ends with a reason while Redis is down', async () => {
    const { end, errors } = await run('fail', { url: 'redis://127.0.0.1:1' });
    expect(end).toBe(1);
    expect(errors).toContain('Redis could not acquire "fail": not connected to Redis at 127.0.0.1:1');
  });

  it('at SIGTERM, a command that holds the lock ends its work and releases it', async () => {
    expect(await run('hold', { signalAt: 'holds' })).toMatchObject({
      end: 'SIGTERM',
      said: expect.stringContaining('has ended'),
    });
    expect(await admin().exists('lock:{held}')).toBe(0);
  });
});
