import { describeOnMachine } from '../../../support/redis/describe-on-machine.js';
import { useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useProcesses } from '../../../support/process/lock-process.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { eventually } from '../../../support/expect/eventually.js';
import { type CliSurroundings, runHere } from '../run-cli.js';

const TERMINAL = { isTerminal: true, env: { NO_COLOR: '1' } };
const TEN_MINUTES_MS = 600_000;

describeOnMachine('a fleet at night', () => {
  const redis = useRedis();
  const full = useRedis({ args: ['--maxmemory', '1'] });
  useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const run = (argv: readonly string[], surroundings: CliSurroundings = TERMINAL) =>
    runHere([...argv, '--prefix', 'lock'], { ...surroundings, env: { REDIS_URL: redis().url, ...surroundings.env } });

  it('the dead holder of a lease of ten minutes is named', async () => {
    const dead = await startProcess(TEN_MINUTES_MS);
    await dead.ask('acquire', 'order:7');
    await dead.kill();
    const alive = await start();
    const unseen = await run(['ls']);
    expect(unseen.stdout).not.toContain('order:7');
    expect((await run(['ls', '--scan'])).stdout).toMatch(/^order:7 .+ unknown$/m);

    const waits = alive.locks.acquire('order:7', { waitMs: 60_000 }).catch(() => undefined);
    await eventually(async () => expect((await run(['ls'])).stdout).toMatch(/^order:7 .+ 1 +[\d.]+ m?s +unknown$/m));
    // A dead instance shows only after two missed renewals.
    expect((await run(['why', 'order:7'])).stdout.split('\n')[0]).toMatch(
      /^process-\d+: it is unclear whether the holder is alive: the next renewal is due in .+\. The lock is free in 9 min \d+ s\.$/,
    );
    const status = await run(['status']);
    expect(status.stdout).toMatch(
      new RegExp(`^warning +"order:7" is held by ${dead.instanceId}, which is not known to be subscribed: `, 'm'),
    );
    const who = await run(['who', dead.instanceId.slice(3)]);
    expect(who).toMatchObject({
      code: 5,
      stderr: `${dead.instanceId} is not known to be subscribed: its process may be dead, or its Redis user has no permission to subscribe. To see whether it renews a lease, run: npx nestjs-redis-lock why <resource>\n`,
    });
    expect(who.stdout).toMatch(/^order:7 +exclusive +/m);
    await alive.locks.shutdown(0);
    await waits;
  });

  it('a frozen instance is named, and what it holds', async () => {
    const frozen = await startProcess(TEN_MINUTES_MS);
    await frozen.ask('acquire', 'order:9');
    const alive = await start();
    await alive.locks.acquire('a');
    frozen.suspend();
    const instances = await run(['instances']);
    expect(instances.code).toBe(5);
    expect(instances.stdout).toMatch(new RegExp(`^${frozen.instanceId} +silent`, 'm'));
    expect(instances.stdout).toMatch(new RegExp(`^${alive.instanceId} +up +\\d`, 'm'));
    expect(instances.stderr).toContain(
      `These instances are connected but did not answer (frozen, too busy, cut off from messages, or running an older version of nestjs-redis-lock)`,
    );
    expect((await run(['who', frozen.instanceId])).stdout).toMatch(/^order:9 +exclusive/m);
    const { code, stdout } = await run(['status']);
    expect(code).toBe(5);
    expect(stdout).toMatch(/^instances +1 answered, 1 silent$/m);
    expect(stdout).toMatch(new RegExp(`^warning +${frozen.instanceId} does not answer: `, 'm'));
    frozen.resume();
  });

  it('a frozen leader is named', async () => {
    const frozen = await startProcess(TEN_MINUTES_MS);
    await frozen.ask('campaign', 'mailer');
    const candidate = await start();
    candidate.locks.campaign('mailer');
    await eventually(async () => expect((await run(['leaders'])).stdout).toMatch(/ alive +.* 1$/m));
    frozen.suspend();
    // The roll call from before may stand for a second.
    await eventually(async () => {
      const { code, stdout } = await run(['leaders']);
      expect(stdout).toMatch(new RegExp(`^mailer +${frozen.instanceId} +does not answer +`, 'm'));
      expect(code).toBe(5);
    });
    frozen.resume();
  });

  it('status is one look, and who names the place in the code', async () => {
    const holder = await start();
    const waiter = await start();
    const lease = await holder.locks.acquire('order:7');
    const waits = waiter.locks.acquire('order:7', { group: 'Orders.pay' });
    await eventually(async () => expect((await run(['status'])).stdout).toMatch(/^waiting +1, the oldest for/m));
    const { code, stdout } = await run(['status']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^STATUS +up$/m);
    expect(stdout).toMatch(/^redis +standalone at (127\.0\.0\.1|localhost):\d+, prefix lock$/m);
    expect(stdout).toMatch(/^locks +available, a write took [\d.]+ ms$/m);
    expect(stdout).toMatch(/^instances +2 answered, 0 silent$/m);
    const who = await run(['who', holder.instanceId.slice(5)]);
    expect(who.code).toBe(0);
    expect(who.stdout).toMatch(/^order:7 +exclusive +\d+ +/m);
    expect((await run(['who', 'test-'])).code).toBe(2);
    expect(await run(['who', 'nobody'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Connected instances: "test-'),
    });
    const contention = await run(['contention', '--for', '10ms']);
    expect(contention).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Orders\.pay +order +1 +/m) });
    await lease.release();
    await (await waits).release();
  });

  it('status ends with 3 if locks are unavailable', async () => {
    const { code, stdout } = await runHere(['status', '--prefix', 'lock'], {
      ...TERMINAL,
      env: { ...TERMINAL.env, REDIS_URL: full().url },
    });
    expect(code).toBe(3);
    expect(stdout).toMatch(/^locks +unavailable$/m);
  });
});
