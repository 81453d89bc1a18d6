import { runUnbundled } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';

const redis = useRedis();

it('both decorators, the response of the filter, and a disconnecting client work on Nest 11', async () => {
  const { code, stdout, stderr } = await runUnbundled(new URL('app-main.ts', import.meta.url), [redis().url]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { version, ...seen } = JSON.parse(stdout) as Record<string, unknown>;
  expect(version).toMatch(/^11\./);
  expect(JSON.stringify(seen['busy'])).not.toMatch(/holder|held|"busy"(?!:null|\])|127\.0\.0\.1|waitMs|app-main/);
  expect(seen).toMatchObject({
    locked: { data: { pay: 'locked:7' } },
    handled: { data: { report: 'handled:7' } },
    guarded: Array(2).fill({ errors: [{ message: 'Forbidden resource' }] }),
    busy: {
      status: 200,
      data: { busy: null },
      errors: [
        {
          message: 'Another request is working on this. Try again later.',
          extensions: { code: 'LOCK_BUSY', status: 423 },
        },
      ],
    },
    began: ['first', 'third'],
  });
});
