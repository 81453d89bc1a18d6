import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../../support/expect/eventually.js';
import { type LeaderProcess, type Reign, useLeaders } from './leader-process.js';
import { useAdmin } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';

/** Allowance for a busy machine. */
const GRACE_MS = 5_000;
const LONG_MS = 60_000;

describe('processes that campaign for one leadership', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useLeaders(() => redis().url);

  const leaderOf = async (leaders: LeaderProcess[]): Promise<LeaderProcess> => {
    const holder = await eventually(async () => {
      const owner = (await admin().get('lock:{leader:mailer}'))?.split('/')[0];
      expect(leaders.map(({ instanceId }) => instanceId)).toContain(owner);
      return owner;
    });
    return leaders.find(({ instanceId }) => instanceId === holder)!;
  };
  /** The first one leads. The others have leases that they do not lose while the machine is busy. */
  const scene = async ({ leaseMs = LONG_MS, others: count = 1 }) => {
    const [leader] = (await start(leaseMs)) as [LeaderProcess];
    await leader.untilLeads();
    const others = await start(...Array<number>(count).fill(LONG_MS));
    await eventually(async () =>
      // Three members for each waiter.
      expect(await admin().zcard('lock:{leader:mailer}:waiters')).toBeGreaterThanOrEqual(3 * count),
    );
    return { all: [leader, ...others], leader, others };
  };
  /** Reigns don't overlap, and each has a larger token. */
  const expectOneAtATime = async (leaders: LeaderProcess[]): Promise<Reign[]> => {
    const living = leaders.filter(({ isRunning }) => isRunning);
    const reigns = (await Promise.all(living.map((leader) => leader.ask('reigns')))).flat();
    reigns.sort((one, other) => one.fencingToken - other.fencingToken);
    for (const [i, reign] of reigns.entries()) {
      if (i > 0) expect(reign.from).toBeGreaterThan(reigns[i - 1]!.to);
    }
    return reigns;
  };

  it('kill -9 of the leader: another one leads when its lease has expired', async () => {
    const { all, leader, others } = await scene({ leaseMs: 1_500, others: 2 });
    const before = (await leader.ask('reigns')).at(-1)!;
    await leader.end('SIGKILL');
    const killedAt = performance.now();
    const next = await leaderOf(others);
    await next.untilLeads();
    expect(performance.now() - killedAt).toBeLessThan(1_500 + 1_250 + GRACE_MS);
    const reigns = await expectOneAtATime(all);
    expect(reigns[0]!.fencingToken).toBeGreaterThan(before.fencingToken);
    expect(reigns[0]!.from).toBeGreaterThan(before.to);
  });

  it('SIGSTOP of the leader: it never believes to lead after another one was elected', async () => {
    const { all, leader, others } = await scene({ leaseMs: 700 });
    leader.child.kill('SIGSTOP');
    await others[0]!.untilLeads();
    await sleep(200); // its reign is to be seen
    leader.child.kill('SIGCONT');
    expect(await leader.ask('isLeader')).toBe(false);
    expect(await leader.ask('send')).toBeUndefined();
    expect(await expectOneAtATime(all)).not.toHaveLength(1);
    await others[0]!.end('SIGTERM');
    await leader.untilLeads(); // it has campaigned again by itself
  });

  it('that stop in the middle of a line of code: the next line notices', async () => {
    const { all, leader, others } = await scene({ leaseMs: 700 });
    const answer = leader.ask('stop');
    await others[0]!.untilLeads();
    const timer = setInterval(() => leader.child.kill('SIGCONT'), 20); // it may not have stopped yet
    expect(await answer.finally(() => clearInterval(timer))).toBe(false);
    await expectOneAtATime(all);
  });

  it('SIGTERM of the leader: it hands over before it ends', async () => {
    const { leader, others } = await scene({});
    await leader.end('SIGTERM');
    expect(leader.child.signalCode).toBe('SIGTERM'); // Nest raises the signal again when all is closed
    await others[0]!.untilLeads(1_250 + GRACE_MS);
  });

  it('that close exit by themselves, the leader and the candidate: no campaign keeps them alive', async () => {
    const { leader, others } = await scene({});
    for (const one of [...others, leader]) {
      await one.ask('close');
      await eventually(() => expect(one.child.exitCode).toBe(0));
    }
  });
});
