import { ScheduleModule } from '@nestjs/schedule';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { asDocumentedUser, documentedUser } from '../../support/redis/lock-user.js';
import { useRedis } from '../../support/redis/redis-server.js';

const VIEWS = ['session', 'now', 'locks', 'lock?resource=x', 'blockers', 'jobs', 'leaders', 'instances'];

describe('the console, as the ACL user of docs/operations/acl.md', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const startApp = useApps();

  const startConsole = async (...more: string[]): Promise<string> => {
    const { name, rules } = documentedUser();
    await admin().call('ACL', 'SETUSER', name, 'reset', ...rules, ...more);
    await admin().call('ACL', 'LOG', 'RESET');
    const console = RedisLockConsoleModule.forRoot({ path: 'ops/locks', unguarded: 'I know' });
    const locks = inMemory({ connection: asDocumentedUser(redis().url), keyPrefix: 'lock' });
    const { url } = await startApp({ imports: [ScheduleModule.forRoot(), locks, console] });
    return `${url}/ops/locks/api`;
  };

  it('shows each view, and is denied nothing', async () => {
    const api = await startConsole();
    for (const view of VIEWS) {
      const { status } = await fetch(`${api}/${view}`);
      expect([view, status]).toEqual([view, 200]);
    }
    const denied = (await admin().call('ACL', 'LOG')) as unknown[][];
    expect(denied.filter((entry) => !/client\|setinfo/i.test(JSON.stringify(entry)))).toEqual([]);
  });

  it('counts missing answers if it may not list connected clients', async () => {
    const frozen = await startProcess(60_000);
    const api = await startConsole('-pubsub|channels');
    frozen.suspend();
    try {
      const { fleet } = (await (await fetch(`${api}/now`)).json()) as { fleet: object };
      expect(fleet).toMatchObject({ completeness: 'partial', heard: 1, asked: 2, silent: [], silentCount: 1 });
    } finally {
      frozen.resume();
    }
  });
});
