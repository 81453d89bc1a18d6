import assert from 'node:assert/strict';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type TestLocks,
  testLocks,
  withTestLocks,
} from 'nestjs-redis-lock/testing';
import { AppModule, Night } from './orders.js';

describe('the night', () => {
  const start = async (): Promise<TestingModule> => {
    const testing = Test.createTestingModule({ imports: [AppModule] });
    const started = await withTestLocks(testing, {
      fleet: 'night',
      clock: 'manual',
    }).compile();
    return started.init(); // the jobs are found here
  };
  let app: TestingModule;
  let locks: TestLocks;
  let night: Night;

  beforeEach(async () => {
    app = await start();
    locks = testLocks(app);
    night = app.get(Night);
  });

  afterEach(() => app.close());

  it('writes a report', async () => {
    await locks.jobs.run('nightly', { tick: '2026-03-01T00:00:00.000Z' });
    assert.deepEqual(night.reports, ['2026-03-01T00:00:00.000Z']);
  });

  it('writes a report for each tick, even twice in one test', async () => {
    await locks.jobs.run('nightly');
    await locks.jobs.run('nightly');
    assert.equal(night.reports.length, 2);
  });

  it('runs each tick on one of two instances', async () => {
    const other = await start();
    const { ranOn, skipped } = await locks.jobs.tick('nightly');
    assert.equal(ranOn, 'app-1');
    assert.deepEqual(skipped, [{ instanceId: 'app-2', reason: 'claimed' }]);
    assert.deepEqual(other.get(Night).reports, []);
    await other.close();
  });
});
