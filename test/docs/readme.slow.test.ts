import { RedisLockStore } from '../../lib/redis/redis-lock-store.js';
import { LockClient } from '../../lib/kernel/lock-client.js';
import { LockTimeoutError } from '../../lib/index.js';
import { rejection } from '../support/expect/eventually.js';
import { useRedis } from '../support/redis/redis-server.js';
import { blocksOf, GUIDES, readGuide, tablesOf } from './guides.js';

const readme = readGuide('README.md');
const plain = (cell: string) => cell.replaceAll('*', '');

describe('the README', () => {
  it('has at most 9,000 bytes: what is longer belongs into a guide', () => {
    expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(9_000);
  });

  it('shows a first snippet of at most twelve lines of code', () => {
    const [first] = blocksOf('README.md').filter(({ language }) => language === 'ts');
    expect(first!.code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(12);
  });

  it('ends with at most twelve links to guides', () => {
    const [, end] = readme.split('## Next steps');
    const links = end!.match(/\]\(docs\//g) ?? [];
    expect(links.length).toBeGreaterThan(5);
    expect(links.length).toBeLessThanOrEqual(12);
  });

  it('compares eight things with six libraries, in the numbers of the last benchmark', () => {
    const [ours] = tablesOf('README.md');
    expect(ours!.rows).toHaveLength(8);
    expect(ours!.header).toHaveLength(8);
    const measured = tablesOf('docs/operations/benchmarks.md')[0]!;
    const COLUMNS = ['nestjs-redis-lock', 'redlock', 'redis-semaphore', 'redlock-universal'];
    const ROWS = {
      'Longest wait of 32 callers, 2 ms of work each [1]': ['One lock, 32 callers, 2 ms of work under it: leases/s', 1],
      'Redis commands per lease, 32 callers [2]': ['One lock, 32 callers: commands to Redis for each lease', 0],
      'Leases/s on a free lock [3]': ['A free lock, one caller: leases/s', 0],
    } as const;
    for (const [name, [source, below]] of Object.entries(ROWS)) {
      const shown = ours!.rows.find(([first]) => first === name)!.slice(1, 5);
      const from = measured.rows[measured.rows.findIndex(([first]) => first === source) + below]!;
      const numbers = COLUMNS.map((column) => plain(from[measured.header.indexOf(column)]!));
      expect({ name, shown: shown.map((cell) => plain(cell).replace(' ms', '')) }).toEqual({
        name,
        shown: numbers,
      });
    }
  });

  it('has a longer comparison in docs/why.md, in the same numbers', () => {
    const shown = tablesOf('docs/why.md').find(({ rows }) => rows.some(([first]) => first?.endsWith('leases/s')))!;
    const measured = tablesOf('docs/operations/benchmarks.md')[0]!;
    let above = '';
    for (const [name, ...cells] of shown.rows) {
      if (!name!.startsWith('The same')) above = name!;
      const from = measured.rows.findIndex(([first]) => first === above);
      const row = measured.rows.slice(from).find(([first]) => first === name);
      const numbers = shown.header.slice(1).map((column) => row?.[measured.header.indexOf(column)]);
      expect([name, cells.map(plain)]).toEqual([name, numbers.map((number) => plain(number!))]);
    }
    expect(shown.rows.length).toBeGreaterThan(5);
  });

  describe('the error that it shows', () => {
    const redis = useRedis();
    const clients: LockClient[] = [];
    afterAll(() => Promise.all(clients.map((client) => client.shutdown(0))));

    async function instance(instanceId: string): Promise<LockClient> {
      const store = new RedisLockStore({ connection: redis().url, keyPrefix: 'lock', instanceId, leaseMs: 30_000 });
      const defaults = { leaseMs: 30_000, waitMs: 10_000, unavailableMs: 10_000 };
      const locks = new LockClient({ store, defaults });
      clients.push(locks);
      expect(await store.start(5_000)).toBe(true);
      return locks;
    }

    it('is that of a call that has waited for another process', async () => {
      const [shown] = blocksOf('README.md').filter(({ note }) => note === 'error: LockTimeoutError');
      const holder = await instance('api-9:4711:x7k2p9');
      const caller = await instance('api-2:4711:m8n4b5');
      await holder.acquire('order:7', { label: { group: 'Orders.ship' } });
      const error = await rejection(caller.acquire('order:7', { waitMs: 200 }));
      expect(error).toBeInstanceOf(LockTimeoutError);
      const withoutTimes = (text: string) => text.replace(/\d+(?:\.\d+)? m?s\b/g, 'a time').replace(/\s+/g, ' ');
      expect(withoutTimes(shown!.code)).toBe(withoutTimes(`${error.name}: ${error.message}`));
    });
  });
});

describe('AGENTS.md', () => {
  const text = readGuide('AGENTS.md');

  it('has at most 6,000 bytes, and ten numbered snippets', () => {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(6_000);
    const [, snippets] = text.split('## Snippets');
    const numbers = [...snippets!.matchAll(/\b(\d+)\. (?=[A-Za-z])/g)].map(([, number]) => Number(number));
    expect(numbers).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('names pages that are there', () => {
    const [table] = tablesOf('AGENTS.md');
    const named = table!.rows.flatMap(([, pages]) => {
      let folder = '';
      return [...pages!.matchAll(/`([^`]+)`/g)].map(([, name]) => {
        if (name!.startsWith('docs/')) folder = name!.replace(/[^/]*$/, '');
        return name!.startsWith('docs/') ? name! : folder + name!;
      });
    });
    expect(named.length).toBeGreaterThan(15);
    expect(named.filter((name) => name.endsWith('.md') && !GUIDES.includes(name))).toEqual([]);
  });
});

it('each version in the changelog is read in three minutes', () => {
  const [, ...versions] = readGuide('CHANGELOG.md').split(/^## /m);
  const words = versions.map((version) => [version.split('\n')[0], version.split(/\s+/).length > 900]);
  expect(words).toEqual(versions.map((version) => [version.split('\n')[0], false]));
});
