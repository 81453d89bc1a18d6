import { runUnbundled } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { type SqlServer, startPostgres } from '../../support/sql/sql-server.js';

describe('transactions on PostgreSQL, whose COMMIT is held up', () => {
  const redis = useRedis();
  let postgres: SqlServer | undefined;
  let results: Record<string, Record<string, unknown>>;

  beforeAll(async () => {
    postgres = await startPostgres();
    const args = [redis().url, postgres.url];
    const { code, stdout, stderr } = await runUnbundled(new URL('main.ts', import.meta.url), args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    results = JSON.parse(stdout) as typeof results;
  }, 120_000);
  afterAll(() => postgres?.stop());

  describe.each(['typeorm-transactional', 'cls', 'mikro-orm', 'prisma'])('%s', (library) => {
    it('a lock below the transaction is free at the COMMIT, and an update is lost', () => {
      expect(results[library]!['below']).toEqual({ isLockedAtCommit: false, left: 4 });
    });

    it('a lock above it is held at the COMMIT, and none is lost', () => {
      expect(results[library]!['outside']).toEqual({ isLockedAtCommit: true, left: 3 });
    });

    it('a lock inside is held at the COMMIT too, where its release waits for it', () => {
      expect(results[library]!['waiting']).toEqual({ isLockedAtCommit: true, left: 3 });
    });

    it('a rollback releases it; until then, one lease served two calls', () => {
      const rollback = { error: 'rolled back', left: 5, isFree: true, acquired: 2 };
      expect(results[library]!['rollback']).toEqual(rollback);
    });
  });

  it('a fence inside stops the lost update of the wrong order, and a holder whose lease has ended', () => {
    expect(results['typeorm-transactional']!['more']).toEqual({ left: 3, late: 'stale', leftThen: 2 });
  });

  it('the wrong order is refused: when the application starts, or at the first call', () => {
    const { typeorm, mikro, cls } = results['refusals']!;
    const above = 'is above @DistributedLock, so the transaction is around the lock';
    expect(typeorm).toBe(`TypeormRefused.sell: @Transactional() of typeorm-transactional ${above}`);
    expect(mikro).toBe(`MikroRefused.sell: @Transactional() of MikroORM ${above}`);
    expect(cls).toEqual([`ClsRefused.sell: @Transactional() of @nestjs-cls/transactional ${above}`, 0]);
  });

  it('a locked method inside a transaction of another service is warned of, once', () => {
    expect(results['refusals']!['warnings']).toEqual([
      'Locked.byTypeorm was called inside a transaction of TypeORM',
      'Locked.byPrisma was called inside a transaction of Prisma',
    ]);
  });
});
