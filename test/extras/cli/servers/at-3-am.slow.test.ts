import { readFileSync } from 'node:fs';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import type { LockObserver } from '../../../../lib/kernel/events/observers.js';
import { LockClient } from '../../../../lib/kernel/lock-client.js';
import { RedisLockStore } from '../../../../lib/redis/redis-lock-store.js';
import { eventually } from '../../../support/expect/eventually.js';
import { connectAdmin } from '../../../support/redis/admin-client.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { runHere } from '../run-cli.js';

const PAGE = new URL('../../../../docs/operations/at-3-am.md', import.meta.url);
const BLOCK = /<!-- cli(?:: (\d|\*))? -->\n\n```sh\n([^]*?)\n```(?:\n\n```text\n([^]*?)\n```)?/g;
const PROGRAM = 'npx nestjs-redis-lock ';
/** Of the dead holder on the page. */
const DEAD = 'api-9:4711:x7k2p9';
const TOKEN = '697180988646400';
/** See mintedAt. */
const TOKENS_PER_MS = 3_200;

interface Block {
  /** The exit code; `*`: any. */
  readonly code: string;
  readonly lines: readonly string[];
  readonly shown: string | undefined;
}

const blocks = [...readFileSync(PAGE, 'utf8').matchAll(BLOCK)].map(([, code = '0', commands, shown]): Block => ({
  code,
  lines: commands!.split('\n'),
  shown,
}));

/** Without what differs from run to run: numbers, durations, and the width of columns. */
function shapeOf(text: string): string {
  const durations = /\b\d[\d.]*(?: (?:ms|s|min|h|d)\b(?: \d+ (?:s|min|h)\b)?)/g;
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/127\.0\.0\.1:\d+/g, 'ADDRESS')
    .replace(durations, 'FOR')
    .replace(/\d{10,}/g, 'TOKEN')
    .replace(/\w+ \([\w./-]+:\d+:\d+\)/g, 'PLACE')
    .replace(/ +/g, ' ')
    .trim();
}

describe('docs/operations/at-3-am.md', () => {
  const redis = useRedis();
  const running: LockClient[] = [];
  afterAll(() => Promise.all(running.map((client) => client.shutdown(0))));

  const start = async (instanceId: string, leaseMs = 30_000, observers: LockObserver[] = []) => {
    const store = new RedisLockStore({ connection: redis().url, keyPrefix: 'lock', instanceId, leaseMs });
    const client = new LockClient({ store, defaults: { leaseMs, waitMs: 60_000 }, observers });
    client.jobs.records(new RedisJobStore(store));
    running.push(client);
    await store.start(5_000);
    return { client, store };
  };

  beforeAll(async () => {
    const first = await start('api-1:4711:k3j2h1', 30_000, [() => {}]);
    const second = await start('api-2:4711:m8n4b5');
    const dead = await start(DEAD, 600_000);
    const { fencingToken } = await dead.client.acquire('order:8');
    // Dies without notice, as in a crash.
    await dead.store.close();
    await makeOlder('order:8', fencingToken);
    await first.client.campaign('mailer').whenElected();
    const jobs = new RedisJobStore(first.store);
    first.client.jobs.missedTicks(jobs).add({
      job: 'nightly-report',
      historySize: 10,
      graceMs: Infinity,
      onMissed: 'skip',
      catchUpWindowMs: 0,
      schedule: () => undefined,
      runOwed: () => Promise.resolve(),
    });
    await jobs.register([{ resource: 'cron:nightly-report', schedule: '0 3 * * * ', next: Date.now() + 3_600_000 }]);
    const work = second.client.using('order:7', { group: 'Orders.ship' }, () =>
      second.client.acquire('order:8', { group: 'Orders.ship' }),
    );
    work.catch(() => undefined);
    await eventually(async () => expect((await first.client.inspect('order:8')).waiters).toHaveLength(1));
    await untilNextRoll();
  });

  /** As if it had been acquired 20 minutes ago, and renewed for the last time eight minutes ago. */
  const makeOlder = async (resource: string, fencingToken: number) => {
    const admin = connectAdmin(redis().port);
    const key = `lock:{${resource}}`;
    const [owner, , leaseMs] = (await admin.get(key))!.split(' ');
    const older = fencingToken - 20 * 60_000 * TOKENS_PER_MS;
    await admin.set(key, `${owner} ${older} ${leaseMs}`, 'PX', 100_000);
    admin.disconnect();
  };

  /** The answers to a roll call stand for a second. */
  const untilNextRoll = () => new Promise((resolve) => setTimeout(resolve, 1_100));

  /** The call that has waited for the dead holder has what it waited for, and ends its other lease. */
  const untilGoneOn = async () => {
    await eventually(async () => expect((await running[0]!.inspect('order:7')).holders).toEqual([]));
    await untilNextRoll();
  };

  it('has commands', () => expect(blocks.length).toBeGreaterThan(10));

  it.each(blocks.flatMap(({ lines, ...block }) => lines.map((line) => [line, block] as const)))(
    '%s',
    async (line, { code, shown }) => {
      expect(line.startsWith(PROGRAM)).toBe(true);
      const [holder] = (await running[0]!.inspect('order:8')).holders;
      const argv = line.slice(PROGRAM.length).replace(TOKEN, `${holder?.fencingToken}`).split(' ');
      const ended = await runHere(argv, { env: { REDIS_URL: redis().url, NO_COLOR: '1' }, isTerminal: true });
      if (code !== '*') expect([ended.stderr, `${ended.code}`]).toEqual([expect.anything(), code]);
      if (argv.includes('--token')) await untilGoneOn();
      if (shown !== undefined) expect(shapeOf(ended.stdout + ended.stderr)).toBe(shapeOf(shown));
    },
  );
});
