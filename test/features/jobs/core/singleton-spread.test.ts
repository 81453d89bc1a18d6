import { InvalidLockOptionsError } from '../../../../lib/kernel/api/errors.js';
import { Fleet, type Member } from '../../../support/world/singleton-fleet.js';
import { track } from '../../../support/expect/tracked.js';

const SKEW_MS = 1_000;
const SPREAD_MS = 60_000;

/** Lets all instances fire the same ticks at the same moments. @returns how many ticks each of them ran */
async function shares(instances: number, ticks: number, jitterMs: number): Promise<number[]> {
  const fleet = new Fleet({ jitterMs });
  const members = fleet.members(...Array.from({ length: instances }, (_, index) => `i${index}`));
  for (let tick = 0; tick < ticks; tick++) {
    for (const member of members) member.fire(`tick ${tick}`);
    await fleet.clock.advance(SPREAD_MS + SKEW_MS);
  }
  expect(fleet.runs).toHaveLength(ticks);
  const ran = new Map<string, number>(members.map(({ name }) => [name, 0]));
  for (const { on } of fleet.runs) ran.set(on, ran.get(on)! + 1);
  return [...ran.values()];
}

describe('a job with jitterMs', () => {
  it('runs its ticks on all instances alike; without it, the first one runs them all', async () => {
    const expected = 5;
    const spread = await shares(30, 30 * expected, SPREAD_MS);
    const chiSquare = spread.reduce((sum, each) => sum + (each - expected) ** 2 / expected, 0);
    // The limit for 29 degrees of freedom, at 0.1 %.
    expect(chiSquare).toBeLessThan(58.3);
    expect(Math.max(...(await shares(30, 20, 0)))).toBe(20);
  });

  it('delays its claims by up to that time, and not all to one moment', async () => {
    const fleet = new Fleet({ jitterMs: 1_000 });
    const members = fleet.members(...Array.from({ length: 100 }, (_, index) => `i${index}`));
    const firedAt = fleet.clock.now();
    for (const member of members) member.fire('09:00');
    await fleet.clock.advance(2_000);
    const sent = members.map(({ tickStore }) => tickStore.claims.map(({ sentAt }) => sentAt - firedAt)).flat();
    expect(sent).toHaveLength(100);
    expect(Math.max(...sent)).toBeLessThan(1_000);
    const tenths = new Set(sent.map((ms) => Math.floor(ms / 100)));
    expect(tenths.size).toBe(10);
  });

  it('sends nothing if the application shuts down during the delay', async () => {
    const fleet = new Fleet({ jitterMs: SPREAD_MS });
    const [anna] = fleet.members('anna') as [Member];
    const call = anna.fire('09:00');
    const shutdown = track(anna.instance.locks.shutdown(0));
    await fleet.clock.advance(SPREAD_MS);
    expect([shutdown.state, call.state, call.value]).toEqual(['fulfilled', 'fulfilled', undefined]);
    expect(anna.tickStore.claims).toEqual([]);
  });

  it.each([-1, 0.5, 60 * 60 * 1_000 + 1, '5'])('is refused with jitterMs %p', async (jitterMs) => {
    const fleet = new Fleet({ jitterMs: jitterMs as number });
    const [anna] = fleet.members('anna') as [Member];
    const call = anna.fire('09:00');
    await fleet.clock.advance(0);
    expect(call.error).toBeInstanceOf(InvalidLockOptionsError);
    expect(call.error).toMatchObject({ option: 'jitterMs' });
  });
});
