import type { TickReply } from '../../../../lib/core/store/job-claims.js';
import type { JobStore } from '../../../../lib/core/store/job-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { RedisJobStore } from '../../../../lib/redis/redis-job-store.js';
import { LockWorld } from '../../../../test/support/world/lock-world.js';
import { REMEMBERED_JOBS } from './simulated-record.js';
import { StoreWitness } from './store-witness.js';

const [JOB] = REMEMBERED_JOBS;
const RESOURCE = `cron:${JOB!.name}`;
const EVERY_MS = JOB!.everySeconds * 1_000;
const SCHEDULE = `every ${EVERY_MS}`;
const TERMS = { leaseMs: 3_000, keepMs: 60_000, overlap: 'wait', takeOver: 'nothing' } as const;
const { historySize } = JOB!;

function setUp() {
  const { server, clock } = new LockWorld();
  const witness = new StoreWitness(server, [JOB!]);
  const inner = new RedisJobStore(new MemoryLockStore({ instanceId: 'a', server }));
  return { server, clock, witness, inner, store: witness.jobStore(inner, 'a') };
}

function ownerOf(name: string) {
  return { resource: RESOURCE, id: `a/1/${name}`, mode: 'exclusive' } as const;
}

describe('the witness, of runs by hand that begin before Redis knows the job, as after it has lost its data', () => {
  /** It fails, so that not even its success makes a record. */
  const runByHand = async (store: JobStore, name: string): Promise<void> => {
    const [owner, tick] = [ownerOf(name), `manual:${name}`];
    const note = { kind: 'manual', historySize } as const;
    const reply = await store.claim({ resource: RESOURCE, tick }, { owner, ...TERMS, note });
    if (reply.status !== 'granted') throw new Error(reply.status);
    const claim = { tick, to: 'finished', keepMs: 60_000 } as const;
    await store.end(owner, { claim, run: { fencingToken: reply.fencingToken, outcome: 'error' } });
  };

  it('expects them in the history, of which there is no record', async () => {
    const { server, witness, inner, store } = setUp();
    for (const name of ['one', 'other']) await runByHand(store, name);
    expect(server.redis.exists(server.keys.jobRecord(RESOURCE))).toBe(0);
    const runs = [{ tick: 'manual:other' }, { tick: 'manual:one' }];
    expect(await inner.look([RESOURCE], 10)).toMatchObject([{ runs }]);
    await witness.checkHistory(inner);
    expect(witness.violations).toEqual([]);
  });

  it('says which of them is not there', async () => {
    const { server, witness, inner, store } = setUp();
    for (const name of ['one', 'other']) await runByHand(store, name);
    server.redis.ltrim(server.keys.jobRuns(RESOURCE), 0, 0);
    await witness.checkHistory(inner);
    expect(witness.violations).toEqual([{ rule: 'history', what: expect.stringContaining('entry 1 is undefined') }]);
  });
});

describe('the witness, of the tick that was due last before a paused job became known', () => {
  /** @param reply of a store that is broken */
  const claimIn = async (world: ReturnType<typeof setUp>, due: number, reply?: TickReply): Promise<TickReply> => {
    const { witness, inner } = world;
    const store = witness.jobStore(reply ? ({ claim: async () => reply } as unknown as JobStore) : inner, 'a');
    const [previous, next] = [due - EVERY_MS, due + EVERY_MS];
    const claim = { owner: ownerOf('one'), ...TERMS, due: { at: due, earlyMs: 0, lateMs: EVERY_MS } };
    const note = { kind: 'tick', historySize, schedule: SCHEDULE, previous, next } as const;
    return store.claim({ resource: RESOURCE, tick: new Date(due).toISOString() }, { ...claim, note });
  };
  const pausedBefore = async () => {
    const world = setUp();
    const { clock, store } = world;
    await store.pause(RESOURCE, { by: 'ann' });
    await clock.advance(2.5 * EVERY_MS);
    const next = (Math.floor(clock.wallNow() / EVERY_MS) + 1) * EVERY_MS;
    await store.register([{ resource: RESOURCE, schedule: SCHEDULE, next }]);
    return { ...world, due: next - EVERY_MS };
  };

  it('expects that it is refused while the pause stands', async () => {
    const { due, ...world } = await pausedBefore();
    expect(await claimIn(world, due)).toMatchObject({ status: 'paused' });
    expect(world.witness.violations).toEqual([]);
  });

  it('says so where it is refused for another pause', async () => {
    const { due, ...world } = await pausedBefore();
    await world.store.resume(RESOURCE);
    await world.clock.advance(1);
    await world.store.pause(RESOURCE, { by: 'ann' });
    await claimIn(world, due, { status: 'paused', by: 'ann' });
    const what = expect.stringContaining('was due during a pause, and is paused after it');
    expect(world.witness.violations).toEqual([{ rule: 'paused', what }]);
  });
});
