import { runTypescript } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';

const PASSWORD = 'hunter2-of-redis';

describe('a process whose Redis does not let it in', () => {
  const redis = useRedis({ args: ['--requirepass', 'another'] });
  const open = useRedis();

  const run = async (connection: unknown, { source }: RegExp) => {
    const file = new URL('secrets-process-main.ts', import.meta.url);
    const { stdout, stderr } = await runTypescript(
      file,
      [connection, source].map((each) => JSON.stringify(each)),
    );
    return stdout + stderr;
  };

  it.each([
    ['a URL', () => `redis://someone:${PASSWORD}@127.0.0.1:${redis().port}`, /WRONGPASS/],
    ['options', () => ({ port: redis().port, password: PASSWORD }), /WRONGPASS/],
    ['a server that wants no password', () => ({ port: open().port, password: PASSWORD }), /acquired/],
    ['a server that is not there', () => `redis://:${PASSWORD}@127.0.0.1:1`, /ECONNREFUSED/],
    [
      'sentinels',
      () => ({ sentinels: [{ port: redis().port }], name: 'main', password: PASSWORD, sentinelPassword: PASSWORD }),
      /sentinels/,
    ],
    ['a URL that cannot be right', () => `redis://:${PASSWORD}@localhost:port`, /cannot be read/],
  ])('prints no secret, also where nobody handles an error: %s', async (_what, connection, expected) => {
    const output = await run(connection(), expected);
    expect(output).toMatch(expected);
    const at = output.indexOf(PASSWORD);
    if (at >= 0) throw new Error(`A secret is told: ${output.slice(Math.max(0, at - 300), at)}<here>`);
  });
});
