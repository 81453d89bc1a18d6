import { InvalidLockOptionsError, InvalidResourceError } from '../../../lib/kernel/api/errors.js';
import { jobResource } from '../../../lib/kernel/api/resource.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { Fleet, type Member } from '../../support/world/singleton-fleet.js';

const RUN = 'cron:report';
const LEADER = 'leader:mailer';

const WAYS: [string, (instance: Instance, name: string) => unknown][] = [
  ['acquire', ({ locks }, name) => locks.acquire(name)],
  ['acquire of several', ({ locks }, name) => locks.acquire(['a', name])],
  ['tryAcquire', ({ locks }, name) => locks.tryAcquire(name)],
  ['using', ({ locks }, name) => locks.using(name, undefined, () => 'used')],
  ['semaphore', ({ locks }, name) => locks.semaphore(name, { permits: 1 })],
  ['campaign', ({ locks }, name) => locks.campaign(name)],
];

async function expectRefused(instance: Instance, take: () => unknown, owner: string): Promise<void> {
  const taken = (async () => take())();
  await expect(taken).rejects.toBeInstanceOf(InvalidResourceError);
  await expect(taken).rejects.toThrow(owner);
  expect(instance.store.commands).toHaveLength(0);
}

describe("the name of a job's run, which may come from a URL", () => {
  let fleet: Fleet;
  let anna: Member;

  beforeEach(() => {
    fleet = new Fleet();
    anna = fleet.member('anna');
  });

  it.each(WAYS)('cannot be taken by another lock: %s', async (_, take) => {
    const { instance } = anna;
    await expectRefused(instance, () => take(instance, RUN), '"cron:" belong to the runs of singleton jobs');
    anna.fire('09:00');
    await fleet.clock.advance(100);
    expect(fleet.runs).toHaveLength(1);
  });

  it('identifies the run for operators: they see it, list it, and end it', async () => {
    const { operators } = anna.instance.locks;
    anna.fire('09:00', 60_000);
    await fleet.clock.advance(100);
    const seen = await operators.inspect(RUN);
    expect(seen.holders).toMatchObject([{ instanceId: 'anna' }]);
    expect((await operators.list({ prefix: 'cron:' })).map(({ resource }) => resource)).toEqual([RUN]);
    const { fencingToken } = seen.holders[0]!;
    expect(await operators.forceRelease(RUN, { fencingToken })).toBe(true);
  });
});

describe('the name of the lock of a leader, which may come from a URL', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it.each(WAYS)('cannot be taken by another lock: %s', async (_, take) => {
    await expectRefused(a, () => take(a, LEADER), 'names that begin with "leader:" belong to leaderships');
    const leader = a.locks.campaign('mailer');
    await settle();
    expect(leader.isLeader()).toBe(true);
  });

  it('identifies the leader for operators: they see it, list it, and end it', async () => {
    const { operators } = a.locks;
    const term = await a.locks.campaign('mailer').whenElected();
    const { fencingToken } = term;
    expect((await operators.inspect(LEADER)).holders).toMatchObject([{ instanceId: 'a', fencingToken }]);
    expect((await operators.list({ prefix: 'leader:' })).map(({ resource }) => resource)).toEqual([LEADER]);
    expect((await operators.inspect('mailer')).holders).toEqual([]);
    expect(await operators.forceRelease(LEADER, { fencingToken })).toBe(true);
    expect(await term.verify()).toBe(false);
  });
});

describe('the longest name', () => {
  it('of a leadership, or a job, leaves room for its prefix; a longer one is refused by its own name', async () => {
    const { instance } = new Fleet().member('anna');
    const long = 'ü'.repeat(252);
    await instance.locks.campaign(`${long}x`).whenElected();
    const taken = (): unknown => instance.locks.campaign(`${long}xx`);
    expect(taken).toThrow(InvalidLockOptionsError);
    expect(taken).toThrow(
      /campaign cannot be used: "ü+\.\.\." has 506 bytes, more than the 505 that the prefix "leader:" leaves/,
    );
    expect(jobResource('x'.repeat(507))).toHaveLength(512);
    expect(() => jobResource('x'.repeat(508))).toThrow(
      'has 508 bytes, more than the 507 that the prefix "cron:" leaves',
    );
  });
});
