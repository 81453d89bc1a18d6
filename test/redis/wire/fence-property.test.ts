import fc from 'fast-check';
import { fence } from '../../../lib/fence.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { StaleFencingTokenError } from '../../../lib/features/fence/core/fence-errors.js';

/** One after another, as a lock would let them: each has a larger token than those before it, and writes for a while. */
const holders = fc.array(
  fc.record({ step: fc.integer({ min: 1, max: 2 ** 40 }), writes: fc.integer({ min: 1, max: 4 }) }),
  { minLength: 1, maxLength: 6 },
);

describe('fence.guard, whatever order the writes of growing holders arrive in', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);

  it('never goes back, and lets in exactly those with no larger token before them', async () => {
    let run = 0;
    const interleavings = holders.chain((list) => {
      let token = 2 ** 51;
      const tokens = list.flatMap(({ step, writes }) => Array<number>(writes).fill((token += step)));
      return fc.shuffledSubarray(tokens, { minLength: 1 });
    });
    await fc.assert(
      fc.asyncProperty(interleavings, fc.boolean(), async (tokens, atOnce) => {
        const key = `fence:${++run}`;
        const write = (token: number): Promise<boolean> =>
          fence.guard(admin(), { key, token }, [['RPUSH', `log:${run}`, token]]).then(
            () => true,
            (error: unknown) => {
              if (error instanceof StaleFencingTokenError) return false;
              throw error;
            },
          );
        let largest = 0;
        // The model.
        const expected = tokens.map((token) => token >= largest && (largest = token) > 0);
        const outcomes: boolean[] = [];
        // One connection keeps the order, also of what is under way together.
        if (atOnce) outcomes.push(...(await Promise.all(tokens.map(write))));
        else {
          let before = 0;
          for (const token of tokens) {
            outcomes.push(await write(token));
            const stored = Number(await admin().get(key));
            expect(stored).toBeGreaterThanOrEqual(before);
            before = stored;
          }
        }
        expect(outcomes).toEqual(expected);
        expect(Number(await admin().get(key))).toBe(largest);
        const log = (await admin().lrange(`log:${run}`, 0, -1)).map(Number);
        expect(log).toEqual(tokens.filter((_, i) => expected[i]));
      }),
      { numRuns: 200 },
    );
  });
});
