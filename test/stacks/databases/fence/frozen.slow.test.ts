import { blocksOf } from '../../../docs/guides.js';
import { programOf } from '../../../support/process/program.js';
import { runTypescript } from '../../../support/process/run-typescript.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { type SqlServer, startMariadb, startPostgres } from '../../../support/sql/sql-server.js';

/**
 * Holders that freeze before their COMMIT, a third at each of three points: 18 at once, for three leases, and until
 * others have sold in the free lanes.
 */
const ROUNDS = process.env['TEST_SPEED'] === 'long' ? 2_000 : 180;

interface Sales {
  /** The number of holders between their last check and their COMMIT when the process stopped. */
  readonly stoodStill: Readonly<Record<'checked' | 'read' | 'written', number>>;
  /** The end of each process's sales: `committed`, or the code of an error. */
  readonly frozen: Readonly<Record<string, number>>;
  readonly others: Readonly<Record<string, number>>;
  readonly sales: number;
  readonly lostUpdates: number;
  /** Sales that were made from the same row as another one. */
  readonly sameStep: number;
  /** Sales that were written after one with a larger token. */
  readonly stale: number;
}

interface Results {
  readonly guarded: Sales;
  readonly unguarded: Sales;
  readonly deadlock: unknown;
  readonly pruned: unknown;
}

const prunings = new Map(
  blocksOf('docs/guide/fencing.md').flatMap(({ note, code }) =>
    note?.startsWith('prune: ') ? [[note.slice('prune: '.length), code] as const] : [],
  ),
);

describe.each([
  ['PostgreSQL', 'postgres', startPostgres, ['40P01', 'committed'], '40001'],
  ['MariaDB', 'mysql', startMariadb, ['ER_LOCK_DEADLOCK', 'committed'], 'ER_LOCK_DEADLOCK'],
] as const)(
  'holders that stand still before their COMMIT on %s',
  (_name, database, startServer, deadlock, conflict) => {
    const redis = useRedis();
    let server: SqlServer;
    let results: Results;
    beforeAll(async () => {
      server = await startServer();
      const seller = programOf(new URL('seller.ts', import.meta.url));
      const args = [seller, database, server.url, redis().url, ROUNDS, prunings.get(database)!];
      const { code, stdout, stderr } = await runTypescript(new URL('frozen-main.ts', import.meta.url), args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      results = JSON.parse(stdout) as Results;
    }, 600_000);
    afterAll(() => server?.stop(), 30_000);

    it('with fence.guard: none of them commits after a later holder, and no update is lost', () => {
      const { stoodStill, frozen, others, sales, ...wrong } = results.guarded;
      expect(wrong).toEqual({ lostUpdates: 0, sameStep: 0, stale: 0 });
      expect(Math.min(...Object.values(stoodStill))).toBeGreaterThanOrEqual(ROUNDS / 3);
      // Others worked while a third of them was frozen before the guard. So all of these are refused: by the guard, or
      // above READ COMMITTED by the database, if another transaction has the row at that moment.
      expect(frozen['committed']).toBeLessThanOrEqual(stoodStill.read + stoodStill.written);
      const { STALE_FENCING_TOKEN: stale = 0, [conflict]: conflicts = 0 } = frozen;
      expect(stale + conflicts).toBeGreaterThanOrEqual(stoodStill.checked);
      expect(stale).toBeGreaterThan(ROUNDS / 10);
      // The others had the row: they commit, and the process that works waits for them.
      expect(frozen['committed']).toBeGreaterThan(ROUNDS / 5);
      expect(others['committed']).toBeGreaterThanOrEqual(stoodStill.checked);
      expect(sales).toBe((frozen['committed'] ?? 0) + (others['committed'] ?? 0));
    });

    it('without it: many do', () => {
      expect(results.unguarded.lostUpdates).toBeGreaterThan(10);
      expect(results.unguarded.stale).toBeGreaterThan(5);
    });

    it('two resources in opposite orders: the error of the database is passed on', () => {
      expect(results.deadlock).toEqual(deadlock);
    });

    it('the statement of the docs removes old rows, 1,000 at once', () => {
      expect(results.pruned).toEqual([501, 1, 1]);
    });
  },
);
