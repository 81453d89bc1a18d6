import { ConsoleAnswers } from '../../../../lib/extras/console/answers/console-answers.js';
import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { describeOnMachine } from '../../../support/redis/describe-on-machine.js';
import { documentedUser } from '../../../support/redis/lock-user.js';
import { eventually } from '../../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { runHere } from '../run-cli.js';

describeOnMachine('an instance whose Redis user may not subscribe', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const run = (...argv: string[]) =>
    runHere([...argv, '--prefix', 'lock'], { isTerminal: true, env: { REDIS_URL: redis().url, NO_COLOR: '1' } });

  it('is listed with its leases by each command and on each page, and never called dead', async () => {
    const { rules } = documentedUser();
    await admin().call('ACL', 'SETUSER', 'deaf', 'reset', ...rules.filter((rule) => !rule.startsWith('&')));
    const password = rules.find((rule) => rule.startsWith('>'))!.slice(1);
    const deaf = await start({ connection: redis().url.replace('://', `://deaf:${password}@`) });
    const idle = await start({ connection: redis().url.replace('://', `://deaf:${password}@`) });
    const other = await start();
    await deaf.locks.acquire('order:7');
    await deaf.locks.campaign('mailer').whenElected();
    other.locks.campaign('mailer');
    const waits = other.locks.acquire('order:7', { waitMs: 60_000 }).catch(() => undefined);
    await eventually(async () => expect((await other.locks.inspect('leader:mailer')).waiters).toHaveLength(1));

    const id = deaf.instanceId;
    const outputs: string[] = [];
    const shows = async (argv: readonly string[], line: RegExp): Promise<void> => {
      // Its report is up to two seconds old.
      await eventually(async () => {
        const { stdout, stderr } = await run(...argv);
        outputs.push(stdout, stderr);
        expect(stdout).toMatch(line);
      });
    };
    const line = new RegExp(`^order:7 .*${id} .* alive$`, 'm');
    await shows(['ls'], line);
    await shows(['ls', '--scan'], line);
    await shows(['who', id], /^order:7 +exclusive +/m);
    await shows(['who', id.slice(5)], /^order:7 +exclusive +/m);
    await shows(['who', idle.instanceId], /receives no messages[^]+^It holds nothing\.$/m);
    await shows(['leaders'], new RegExp(`^mailer +${id} +alive`, 'm'));
    await shows(['why', 'order:7'], new RegExp(`^${id}: `, 'm'));
    for (const each of [deaf, idle]) {
      await shows(['status'], new RegExp(`^warning +${each.instanceId} receives no messages: `, 'm'));
      await shows(['doctor'], new RegExp(`^warning +${each.instanceId} receives no messages: `, 'm'));
      await shows(['instances'], new RegExp(`^${each.instanceId} +up .* no +[02] +0`, 'm'));
    }
    expect(outputs.join('\n')).not.toMatch(/\bdead\b/);

    const source = {
      service: 'default',
      client: other.locks,
      jobs: null,
      leaseMs: null,
      ownJobs: () => new Set<string>(),
    };
    const answers = new ConsoleAnswers({ title: 'Shop', sources: [source], actions: [], onError: () => {} });
    const view = async <B>(name: string): Promise<B> => {
      const { body } = await answers.view(
        name,
        new URLSearchParams(name === 'lock' ? { resource: 'order:7' } : {}),
        undefined,
      );
      return JSON.parse(body!) as B;
    };
    expect((await view<ConsoleBodies['lock']>('lock')).holders).toMatchObject([{ instanceId: id, life: 'alive' }]);
    expect((await view<ConsoleBodies['leaders']>('leaders')).rows).toMatchObject([{ instanceId: id, life: 'alive' }]);
    const { rows } = await view<ConsoleBodies['instances']>('instances');
    for (const instanceId of [id, idle.instanceId]) {
      expect(rows).toContainEqual(expect.objectContaining({ instanceId, state: 'up', hearing: false }));
    }
    await deaf.locks.shutdown(0);
    await idle.locks.shutdown(0);
    await other.locks.shutdown(0);
    await waits;
  });
});
