import { SeededRandom } from '../../../test/support/world/seeded-random.js';
import type { Fault } from '../faults/fault.js';
import type { FaultSeen } from '../history/entries.js';
import type { Saying } from '../history/history-log.js';
import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';
import { inject, type Plan } from './inject.js';

const KINDS = ['a', 'b', 'c', 'd', 'e'];

/** A world with two workers, in which a lease lasts for no time. */
function worldOf(seed: number) {
  const said: Saying[] = [];
  const slots = ['w1', 'w2'].map((instanceId) => ({ worker: { instanceId } }) as Slot);
  const random = new SeededRandom(seed);
  const upTo = (limit: number): number => Math.floor(random.fraction() * limit);
  const world = {
    settings: { seed },
    leaseMs: 0,
    slots,
    awake: slots,
    random,
    upTo,
    countHolds: () => said.length,
    say: (saying: Saying) => said.push(saying),
  } as unknown as World;
  return { world, said };
}

async function order(seed: number, changes: Partial<Plan> = {}): Promise<FaultSeen[]> {
  const { world, said } = worldOf(seed);
  const faults = KINDS.map((kind): Fault => ({ kind, strikes: 'worker', inject: () => Promise.resolve() }));
  await inject(world, { faults, each: 3, together: 0, ...changes });
  return said as FaultSeen[];
}

const kindsOf = (said: readonly FaultSeen[]): string[] =>
  said.filter(({ phase }) => phase === 'begin').map(({ kind }) => kind);

describe('the faults of a chapter', () => {
  it('come as often as was asked for, each of them', async () => {
    expect(kindsOf(await order(1)).sort()).toEqual(KINDS.flatMap((kind) => [kind, kind, kind]));
  });

  it('come in the same order with the same seed, and in another one with another', async () => {
    const [one, again, other] = [await order(1), await order(1), await order(2)];
    expect(kindsOf(again)).toEqual(kindsOf(one));
    expect(kindsOf(other)).not.toEqual(kindsOf(one));
  });

  it('come again where they did not come to pass, and not for ever', async () => {
    const { world, said } = worldOf(1);
    let tries = 0;
    const faults: Fault[] = [
      { kind: 'rare', strikes: 'redis', inject: () => Promise.resolve(++tries === 3) },
      { kind: 'never', strikes: 'redis', inject: () => Promise.resolve(false) },
    ];
    await inject(world, { faults, each: 1, together: 0 });
    const ends = (said as FaultSeen[]).filter(({ phase }) => phase === 'healed');
    expect(ends.filter(({ kind }) => kind === 'rare').map(({ missed }) => missed)).toEqual([true, true, false]);
    expect(ends.filter(({ kind, missed }) => kind === 'never' && !missed)).toEqual([]);
    expect(ends.length).toBeLessThan(50);
  });

  it('go on until there were enough holds, and no longer', async () => {
    expect(kindsOf(await order(1, { each: 1, holds: 11 }))).toHaveLength(6);
    expect(kindsOf(await order(1, { holds: 100 })).length).toBeGreaterThanOrEqual(50);
  });

  it('never strike one worker twice at a time, where two come together', async () => {
    const struck = new Map<string, number>();
    let most = 0;
    for (const { phase, victims } of await order(3, { each: 20, together: 100 })) {
      for (const victim of victims) {
        struck.set(victim, (struck.get(victim) ?? 0) + (phase === 'begin' ? 1 : -1));
        most = Math.max(most, struck.get(victim)!);
      }
    }
    expect(most).toBe(1);
  });

  it('are told with what went wrong, where one cannot be made, and go on', async () => {
    const { world, said } = worldOf(1);
    const broken: Fault = { kind: 'x', strikes: 'redis', inject: () => Promise.reject(new Error('no such thing')) };
    await inject(world, { faults: [broken], each: 2, together: 0 });
    const crashes = said.filter(({ type }) => type === 'crash');
    expect(crashes).toEqual(
      Array(2).fill(expect.objectContaining({ error: expect.stringContaining('no such thing') })),
    );
  });
});
