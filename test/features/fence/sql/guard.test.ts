import { Redis } from 'ioredis';
import { InvalidLockOptionsError, LeaseLostError, type LockMode } from '../../../../lib/index.js';
import type { Lease } from '../../../../lib/kernel/api/lease.js';
import { fence, StaleFencingTokenError } from '../../../../lib/fence.js';

/** A client of pg in a transaction. Records the guard's statements, and replies with this token. */
function transaction(answer: number | Error = 7) {
  const sent: [text: string, values: unknown[]][] = [];
  const query = async (text: string, values: unknown[]) => {
    sent.push([text, values]);
    if (answer instanceof Error) throw answer;
    return { rows: [{ token: String(answer) }] };
  };
  return { tx: { query }, sent };
}

function lease(more: Partial<Lease> & { mode?: LockMode } = {}): Lease {
  const held = { resources: ['stock:7'], mode: 'exclusive', fencingToken: 7, assertHeld() {} };
  return { ...held, ...more } as Lease;
}

async function refusal(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => new Error('not refused'),
    (error: Error) => error,
  );
}

describe('fence.guard in a transaction', () => {
  it('is one statement, with the resource and the token of the lease', async () => {
    const { tx, sent } = transaction();
    await fence.guard(tx, lease());
    await fence.guard(tx, { resource: 'stock:8', token: 7 });
    expect(sent.map(([, values]) => values)).toEqual([
      ['stock:7', 7],
      ['stock:8', 7],
    ]);
    expect(sent[0]![0]).toMatch(/^INSERT INTO redis_lock_fences .* ON CONFLICT .* RETURNING token$/);
  });

  it('throws for a stale token, and names the newer holder', async () => {
    const error = await refusal(fence.guard(transaction(9).tx, lease()));
    expect(error).toBeInstanceOf(StaleFencingTokenError);
    expect(error).toMatchObject({ resource: 'stock:7', token: 7, newestToken: 9 });
    expect(error.message).toMatch(/a later holder has used 9\. Roll the transaction back\. Discard this result/);
  });

  it.each([
    ['of the driver', new Error('invalid input syntax for type bigint: "redis_lock_fences has token 9"')],
    ['of a library', new Error('Failed query', { cause: new Error('x: "redis_lock_fences has token 9"') })],
  ])('throws the same for the error %s by which PostgreSQL ends the transaction', async (_what, raised) => {
    const error = await refusal(fence.guard(transaction(raised).tx, lease()));
    expect(error).toBeInstanceOf(StaleFencingTokenError);
    expect(error).toMatchObject({ resource: 'stock:7', token: 7, newestToken: 9 });
  });

  it('does not take the SQL of an error for that', async () => {
    const failed = new Error("Failed query: CAST('redis_lock_fences has token ' || held.token AS BIGINT)");
    expect(await refusal(fence.guard(transaction(failed).tx, lease()))).toBe(failed);
  });

  it.each([
    ['a lost lease', { assertHeld: () => { throw new LeaseLostError('stock:7', 'expired', 7); } }, /no longer held/], // prettier-ignore
    [
      'a lease of several resources',
      { resources: ['a', 'b'] },
      /each with its own token.* \{ resource: "a", token: lease\.fencingTokenOf\("a"\) \}/,
    ],
    ['a reader', { mode: 'read' as const }, /has the mode read: others hold it at the same time, with larger tokens/],
    ['permits of a semaphore', { mode: 'semaphore' as const }, /has the mode semaphore/],
  ])('refuses %s before it sends anything', async (_what, more, message) => {
    const { tx, sent } = transaction();
    expect((await refusal(fence.guard(tx, lease(more)))).message).toMatch(message);
    expect(sent).toEqual([]);
  });

  it.each([
    [{ resource: '', token: 1 }, /the name is empty/],
    [{ resource: 'a\0b', token: 1 }, /resource "a\\u0000b" contains a NUL, which PostgreSQL does not allow in text/],
    [{ resource: 'a', token: 0 }, /token must be/],
    [{ resource: 'a' }, /token/],
    [{ resource: 'a', token: 1, ttlMs: 5 }, /ttlMs/],
    [undefined, /fence\.guard/],
  ])('refuses %j', async (holder, message) => {
    const { tx, sent } = transaction();
    const error = await refusal(fence.guard(tx, holder as never));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toMatch(message);
    expect(sent).toEqual([]);
  });

  it.each([undefined, null, 'tx', {}, { query: 1 }, []])('refuses %j as a transaction', async (tx) => {
    const error = await refusal(fence.guard(tx as never, lease()));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toMatch(/it needs an open transaction of pg, postgres\.js, TypeORM/);
  });

  it('suggests the DDL if the table is missing, even if a library has wrapped the error', async () => {
    const missing = Object.assign(new Error('relation does not exist'), { code: '42P01' });
    for (const error of [missing, new Error('Failed query', { cause: missing })]) {
      const said = await refusal(fence.guard(transaction(error).tx, lease()));
      expect(said).toBeInstanceOf(InvalidLockOptionsError);
      expect(said.message).toContain(fence.schema('postgres'));
      expect(said.cause).toBe(error);
    }
  });

  it('passes on every other error of the database', async () => {
    const deadlock = Object.assign(new Error('deadlock detected'), { code: '40P01' });
    expect(await refusal(fence.guard(transaction(deadlock).tx, lease()))).toBe(deadlock);
  });

  it('asks for commands on a client of Redis', async () => {
    const redis = new Redis({ lazyConnect: true });
    const error = await refusal(fence.guard(redis as never, { key: 'fence:x', token: 1 } as never));
    expect(error.message).toMatch(/commands must be an array/);
  });
});

describe('fence.schema', () => {
  it.each(['postgres', 'mysql', 'sqlite'] as const)('%s: one row for each resource', (dialect) => {
    expect(fence.schema(dialect)).toMatch(
      /^CREATE TABLE IF NOT EXISTS redis_lock_fences \([^;]* PRIMARY KEY,[^;]*;\n$/,
    );
  });

  it('refuses other databases', () => {
    expect(() => fence.schema('oracle' as never)).toThrow(/dialect must be .*postgres/);
  });
});
