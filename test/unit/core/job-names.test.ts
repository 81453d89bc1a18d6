import { InvalidLockOptionsError } from '../../../lib/core/errors.js';
import type { Lease } from '../../../lib/core/lease.js';
import { Fleet, type Member } from '../../support/singleton-fleet.js';

const RUN = 'cron:report';

describe("the name of a job's run, which may come from a URL", () => {
  let fleet: Fleet;
  let anna: Member;

  beforeEach(() => {
    fleet = new Fleet();
    anna = fleet.member('anna');
  });

  it.each<[string, (member: Member) => unknown]>([
    ['acquire', ({ instance: { locks } }) => locks.acquire(RUN)],
    ['acquire of several', ({ instance: { locks } }) => locks.acquire(['a', RUN])],
    ['tryAcquire', ({ instance: { locks } }) => locks.tryAcquire(RUN)],
    ['using', ({ instance: { locks } }) => locks.using(RUN, undefined, () => 'used')],
    ['semaphore', ({ instance: { locks } }) => locks.semaphore(RUN, { permits: 1 })],
    ['campaign', ({ instance: { locks } }) => locks.campaign(RUN)],
  ])('cannot be taken by another lock: %s', async (_, take) => {
    const taken = (async () => take(anna))();
    await expect(taken).rejects.toBeInstanceOf(InvalidLockOptionsError);
    await expect(taken).rejects.toThrow('names that begin with "cron:" belong to the runs of singleton jobs');
    expect(anna.instance.store.commands).toHaveLength(0);
    anna.fire('09:00');
    await fleet.clock.advance(100);
    expect(fleet.runs).toHaveLength(1);
  });

  it('is what operators know the run by: they see it, list it, and end it', async () => {
    const { operators } = anna.instance.locks;
    anna.fire('09:00', 60_000);
    await fleet.clock.advance(100);
    const seen = await operators.inspect(RUN);
    expect(seen.holders).toMatchObject([{ instanceId: 'anna' }]);
    expect((await operators.list({ prefix: 'cron:' })).map(({ resource }) => resource)).toEqual([RUN]);
    const { fencingToken } = seen.holders[0]!;
    expect(await operators.forceRelease(RUN, { fencingToken })).toBe(true);
  });

  it('may be adopted by a process that the run hands its lease to', async () => {
    const ben = fleet.member('ben');
    let text: string | undefined;
    let adopted: Lease | undefined;
    anna.run('09:00', async (lease) => {
      text = await lease.transfer();
      adopted = await ben.instance.locks.adopt(text);
    });
    await fleet.clock.advance(100);
    expect(adopted?.resource).toBe(RUN);
    expect(fleet.holder).toBe('ben');
  });
});
