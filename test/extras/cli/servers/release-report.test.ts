import { Module } from '@nestjs/common';
import { type LockEvent, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { useApps } from '../../../nest/nest-apps.js';
import { useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { runHere } from '../run-cli.js';

describe.each([0, 3])('a lease that the command line ends, in database %d', (database) => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  const url = () => `${redis().url}/${database}`;
  const startInstance = useInstances(url);
  const release = async (resource: string, fencingToken: number) => {
    const typed = ['release', resource, '--token', `${fencingToken}`, '--by', 'ann', '--reason', 'OPS-17', '--yes'];
    const { code, stdout, stderr } = await runHere([...typed, '--json', '--prefix', 'lock'], {
      env: { REDIS_URL: url() },
    });
    return { code, ended: JSON.parse(stdout) as Record<string, unknown>, stderr };
  };

  const startApp = async (instanceId: string) => {
    const events: LockEvent[] = [];
    @Module({
      imports: [
        RedisLockModule.forRoot({
          connection: url(),
          instanceId,
          observers: [(event) => void events.push(event)],
          // The holder does not notice that its lease is gone.
          shutdown: { drainMs: 0 },
        }),
      ],
    })
    class App {}
    const { app, log } = await start({ imports: [App] });
    const reported = () => events.filter(({ type }) => type === 'forceReleased');
    return { locks: app.get(RedisLockService), log, reported };
  };

  it.each(['order:7', '{a}b:1'])('is reported by one instance: %s', async (resource) => {
    const apps = [await startApp('api-1'), await startApp('api-2')];
    const { fencingToken } = await apps[0]!.locks.acquire(resource);
    const { code, ended, stderr } = await release(resource, fencingToken);
    expect({ code, ended }).toMatchObject({ code: 0, ended: { resource, fencingToken, holder: 'api-1', by: 'ann' } });
    expect(['api-1', 'api-2']).toContain(ended['reportedBy']);
    expect(stderr).toContain(`${String(ended['reportedBy'])} has logged this.`);
    const [event, ...more] = apps.flatMap(({ reported }) => reported());
    expect(more).toEqual([]);
    expect(event).toMatchObject({ resource, fencingToken, holder: 'api-1', by: 'ann', reason: 'OPS-17' });
    const lines = apps.flatMap(({ log }) => log.at('warn')).filter((line) => line.includes('OPS-17'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`Requested by "ann". Reason: "OPS-17".`);
  });

  it('says that no instance has reported it if no process has a log', async () => {
    const { locks } = await startInstance({ connection: url() });
    const { fencingToken } = await locks.acquire('order:7');
    const { code, ended, stderr } = await release('order:7', fencingToken);
    expect({ code, reportedBy: ended['reportedBy'] }).toEqual({ code: 0, reportedBy: null });
    expect(stderr).toContain('No instance has logged this: this output is the only record.');
  });

  it('is not reported for a message alone', async () => {
    const { locks, reported } = await startApp('api-1');
    const { fencingToken } = await locks.acquire('order:7');
    await admin().publish(`lock:roll:${database}`, `request ${'a'.repeat(22)} order:7`);
    // Messages arrive in order, so this one is the last.
    await release('order:7', fencingToken);
    expect(reported()).toHaveLength(1);
  });
});
