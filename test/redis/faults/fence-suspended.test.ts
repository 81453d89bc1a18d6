import { eventually } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('a process that is suspended between its check and its write', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  it('is refused by the guard when it resumes, and by nothing else', async () => {
    const [paused, next] = [await startProcess(700), await startProcess(60_000)];
    const old = await paused.ask('acquire', 'x');
    const late = paused.ask('checkAndWrite', 'x', true);
    // Its lease runs out, and the lock is taken over.
    const taken = await next.ask('acquire', 'x');
    expect(taken.fencingToken).toBeGreaterThan(old.fencingToken);
    expect(await next.ask('checkAndWrite', 'x', false)).toEqual({ guarded: 'OK', unguarded: 'OK' });

    expect(await paused.continue(late)).toEqual({ guarded: 'STALE_FENCING_TOKEN', unguarded: 'OK' });
    expect(await admin().get('x-guarded')).toBe(String(taken.fencingToken));
    expect(await admin().get('x-unguarded')).toBe(String(old.fencingToken)); // the damage that fencing is for
    await eventually(async () => expect(await paused.ask('state', 'x')).toMatchObject({ isHeld: false }));
    expect(await next.ask('checkAndWrite', 'x', false)).toMatchObject({ guarded: 'OK' });
  });
});
