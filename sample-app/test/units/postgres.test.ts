import { Client } from 'pg';
import { emptyPglite } from '../../../test/support/sql/pglite.mjs';
import { startPostgres } from '../../demo/postgres.mjs';

let postgres: Awaited<ReturnType<typeof startPostgres>>;
const clients: Client[] = [];
beforeAll(async () => {
  postgres = await startPostgres(await emptyPglite());
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()));
  await postgres.stop();
}, 30_000);

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: postgres.url });
  client.on('error', () => {});
  await client.connect();
  clients.push(client);
  return client;
}

const SALE = `INSERT INTO closings (token, closed_by) VALUES ($1, 'it')`;
const tokens = async (client: Client): Promise<unknown[]> =>
  (await client.query<{ token: string }>('SELECT token FROM closings ORDER BY id')).rows.map(({ token }) => token);

it('gives each connection transactions of its own, one after another', async () => {
  const [one, two] = [await connect(), await connect()];
  await one.query('BEGIN');
  await one.query(SALE, [1]);
  const ends: string[] = [];
  const seen = tokens(two).finally(() => ends.push('read'));
  await one.query('SELECT 1');
  const committed = one.query('COMMIT').finally(() => ends.push('committed'));
  expect(await seen).toEqual(['1']);
  await committed;
  expect(ends).toEqual(['committed', 'read']);
  await expect(two.query('SELECT * FROM nothing')).rejects.toThrow('does not exist');
  expect(await tokens(two)).toEqual(['1']);
});

it('rolls back what a connection that has broken left open, or one that stands still', async () => {
  for (const leave of [
    (client: Client) =>
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy(),
    () => {},
  ]) {
    const [one, two] = [await connect(), await connect()];
    await one.query('BEGIN');
    await one.query(SALE, [2]);
    leave(one);
    expect(await tokens(two)).toEqual(['1']);
  }
}, 30_000);
