// The claims in the table of docs/guide/fencing-drivers.md about each driver, beyond its snippet. The row in the
// database has `token` + 2.
import { createPool } from 'mysql2/promise';

const UPDATE = ['UPDATE stock SET count = ', ', fencing_token = ', ' WHERE id = ', ' AND fencing_token <= '];
const numbered = UPDATE.map((part, index) => `${part}$${index + 1}`).join('');
const marked = UPDATE.map((part) => `${part}?`).join('');
const upsert = `INSERT INTO stock (count, fencing_token, id) VALUES ($1, $2, $3) ON CONFLICT (id)
  DO UPDATE SET count = excluded.count, fencing_token = excluded.fencing_token
  WHERE stock.fencing_token <= excluded.fencing_token`;

/** The outcome with a token that is not stale, and with one that is. */
const both = async (token, run) => [await run(token + 2), await run(token + 1)];

/** @type {Record<string, (world: any) => Promise<Record<string, unknown>>>} */
export const CLAIMS = {
  async pg({ client, token, reset }) {
    await reset();
    return {
      query: await both(token, async (t) => (await client.query(numbered, [1, t, 'a', t])).rowCount),
      insert: await both(token, async (t) => (await client.query(upsert, [1, t, 'a'])).rowCount),
      type: typeof (await client.query('SELECT fencing_token FROM stock')).rows[0].fencing_token,
    };
  },
  async typeorm({ client, snippet: { Stock }, token, reset }) {
    await reset();
    const { LessThanOrEqual } = await import('typeorm');
    const entity = (t) => ({ count: 1, fencingToken: String(t) });
    const repository = client.getRepository(Stock);
    const orUpdate = (t) =>
      client
        .createQueryBuilder()
        .insert()
        .into(Stock)
        .values({ id: 'a', ...entity(t) })
        .orUpdate(['count', 'fencing_token'], ['id'], {
          overwriteCondition: { where: 'stock.fencing_token <= excluded.fencing_token' },
        })
        .returning('id')
        .execute();
    const criteria = (t) => ({ id: 'a', fencingToken: LessThanOrEqual(String(t)) });
    return {
      update: await both(token, async (t) => (await repository.update(criteria(t), entity(t))).affected),
      query: await both(token, (t) => client.query(numbered, [1, t, 'a', t])),
      insert: await both(token, (t) => client.query(upsert, [1, t, 'a'])),
      returning: await both(token, (t) => client.query(`${upsert} RETURNING id`, [1, t, 'a'])),
      orUpdate: await both(token, async (t) => (await orUpdate(t)).raw),
      type: typeof (await repository.findOneBy({ id: 'a' })).fencingToken,
    };
  },
  async prisma({ client, token, reset }) {
    await reset();
    const orCode = (promise) => promise.catch(({ code }) => code);
    const where = (t) => ({ id: 'a', fencingToken: { lte: t } });
    const data = (t) => ({ count: 1, fencingToken: t });
    return {
      executeRaw: await both(
        token,
        (t) =>
          client.$executeRaw`UPDATE stock SET count = 1, fencing_token = ${t} WHERE id = 'a' AND fencing_token <= ${t}`,
      ),
      update: await both(token, (t) => orCode(client.stock.update({ where: where(t), data: data(t) }))),
      returning: await both(
        token,
        (t) => client.$queryRaw`UPDATE stock SET fencing_token = ${t} WHERE fencing_token <= ${t} RETURNING id`,
      ),
      asBigInt: await both(token, async (t) => (await client.stock.updateMany({ where: where(BigInt(t)), data: data(BigInt(t)) })).count), // prettier-ignore
      type: typeof (await client.stock.findFirst()).fencingToken,
    };
  },
  async 'mikro-orm'({ client, snippet: { Stock }, token, reset }) {
    await reset();
    return {
      run: await both(token, async (t) => (await client.execute(marked, [1, t, 'a', t], 'run')).affectedRows),
      all: await both(token, (t) => client.execute(marked, [1, t, 'a', t])),
      type: typeof (await client.fork().findOne(Stock, { id: 'a' })).fencingToken,
    };
  },
  async mysql2({ client, token, url, reset }) {
    await reset();
    const counts = async (pool, t) => {
      const [{ affectedRows, changedRows }] = await pool.execute(marked, [1, t, 'a', t]);
      return { affectedRows, changedRows };
    };
    const first = await both(token, (t) => counts(client, t));
    const again = await counts(client, token + 2);
    const changedOnly = createPool({ uri: url, flags: ['-FOUND_ROWS'] });
    const withoutFlag = await counts(changedOnly, token + 2);
    await changedOnly.end();
    const [[row]] = await client.query('SELECT fencing_token FROM stock');
    return { first, again, withoutFlag, type: typeof row.fencing_token };
  },
};
