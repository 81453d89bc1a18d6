import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { documentedUser } from '../../support/redis/lock-user.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';
import { inMemory, useApps } from '../nest-apps.js';

const { password, rules } = documentedUser();

describe('an application whose Redis user lacks permissions', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  const allow = (...changes: string[]) =>
    admin().call('ACL', 'SETUSER', 'app', 'reset', 'on', `>${password}`, ...rules.slice(1), ...changes);
  const connection = () => redis().url.replace('://', `://app:${password}@`);
  const at = () => `127.0.0.1:${redis().port}`;

  it('starts with an error in the log that names them, and works when they are given', async () => {
    await allow('-hset', '-zadd');
    const { app, log } = await start({ imports: [inMemory({ connection: connection() })] });
    expect(log.lines.filter(({ context }) => context === 'RedisLock')).toEqual([
      {
        level: 'error',
        context: 'RedisLock',
        message:
          `The Redis user at ${at()} lacks permissions that locks need: +hset +zadd. Calls that need them fail with ` +
          'LockUnavailableError. Add these rules with ACL SETUSER; no restart is needed. See docs/operations/acl.md.',
      },
    ]);
    const locks = app.get(RedisLockService);
    expect(await rejection(locks.acquire('a', { mode: 'read' }))).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await admin().call('ACL', 'SETUSER', 'app', '+hset', '+zadd');
    await (await locks.acquire('a', { mode: 'read' })).release();
  });

  it('warns of those that locks can do without', async () => {
    await allow('resetchannels', '-hrandfield');
    const { log } = await start({ imports: [inMemory({ connection: connection() })] });
    expect(log.at('error')).toEqual([]);
    expect(log.at('warn')).toEqual([
      expect.stringMatching(
        /^The Redis user at \S+ lacks optional permissions: &lock:\* \+hrandfield\. Waiters may notice .*acl\.md\.$/,
      ),
      expect.stringMatching(
        /^Waiters get no messages from Redis: .*releases skip them: while other instances want .* may get none of them/,
      ),
    ]);
  });

  it.each([
    ['the documented user', []],
    ['with the option that needs more', ['+wait']],
  ])('says nothing about %s', async (_, more) => {
    await allow(...more);
    const options = more.length > 0 ? { restartQuarantineMs: 30_000, durability: { replicas: 1 } } : {};
    const { log } = await start({ imports: [inMemory({ connection: connection(), ...options })] });
    expect([...log.at('warn'), ...log.at('error')]).toEqual([]);
  });

  it.each([
    ['is told that Redis may remove locks', [], 1],
    ['is not, if it may not ask', ['-info'], 0],
  ])('%s', async (_, more, warnings) => {
    await allow(...more);
    await admin().config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'volatile-lru');
    try {
      const { log } = await start({ imports: [inMemory({ connection: connection() })] });
      const line = expect.stringMatching(
        new RegExp(
          `^Redis at ${at()} removes keys when its memory is full \\(maxmemory-policy volatile-lru\\): .*two processes ` +
            'can hold the same lock\\. Set maxmemory-policy to noeviction, .*logs\\.md#the-application-starts\\.$',
        ),
      ) as string;
      expect(log.at('warn')).toEqual(Array(warnings).fill(line));
    } finally {
      await admin().config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
    }
  });

  it('names the options whose command is missing', async () => {
    await allow('-info');
    const options = { restartQuarantineMs: 30_000, durability: { replicas: 1 } };
    const { log } = await start({ imports: [inMemory({ connection: connection(), ...options })] });
    expect(log.at('error')).toEqual([expect.stringContaining('that locks need: +info +wait.')]);
  });

  it('says it when Redis comes up later than the application', async () => {
    const late = await startRedis();
    try {
      const url = late.url.replace('://', `://app:${password}@`);
      await late.kill();
      const { log } = await start({ imports: [inMemory({ connection: url, attemptTimeoutMs: 50 })] });
      expect(log.at('error')).toEqual([]);
      await late.restart({ args: ['--user', 'app', ...rules, '-hset'] });
      await eventually(() => expect(log.at('error')).toEqual([expect.stringContaining('that locks need: +hset.')]));
    } finally {
      await late.stop();
    }
  });

  it('names each node of a quorum, in one line for those that lack the same', async () => {
    const others = await Promise.all([startRedis(), startRedis()]);
    try {
      await allow('-hset', '-info');
      const quorum = { connections: [connection(), ...others.map(({ url }) => url)] };
      const { log } = await start({ imports: [RedisLockModule.forRoot({ quorum })] });
      expect(log.at('error')).toEqual([
        expect.stringMatching(new RegExp(`^The Redis user at ${at()} lacks .* \\+hset \\+info\\.`)),
      ]);
    } finally {
      await Promise.all(others.map((other) => other.stop()));
    }
  });
});
