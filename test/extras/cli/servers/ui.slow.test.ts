import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { type CliChild, startCli } from '../run-process.js';

const redis = useRedis();
const start = useInstances(() => redis().url);

let child: CliChild | undefined;
afterEach(async () => {
  child?.child.kill('SIGKILL');
  await child?.ended;
});

/** Starts it, and returns the address that it prints. */
async function serve(url: string): Promise<string> {
  child = startCli(['ui', '--timeout', '1s'], { REDIS_URL: url });
  let printed = '';
  child.child.stdout!.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  while (!printed.includes('\n')) await once(child.child.stdout!, 'data');
  return printed.trim();
}

/** With any `Host`, which fetch() does not let a caller choose. */
function get(url: string, host: string, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode!);
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('ui', () => {
  it('serves the console of the application, read-only, to this machine alone', async () => {
    const { locks, instanceId } = await start();
    const lease = await locks.acquire('order:7');
    const url = await serve(redis().url);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{24}\/$/);
    const page = await fetch(url);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const body = await (await fetch(`${url}api/locks`)).text();
    expect(JSON.parse(body)).toMatchObject({ rows: [{ resource: 'order:7', instanceId }] });
    for (const view of ['now', 'locks', 'lock?resource=order:7', 'blockers', 'jobs', 'leaders', 'instances']) {
      const text = await (await fetch(`${url}api/${view}`)).text();
      expect(text).not.toContain(String(redis().port));
      expect(text).toContain('"schemaVersion":1');
    }
    const { host, origin } = new URL(url);
    expect(await get(url, host.replace('127.0.0.1', 'localhost'))).toBe(200);
    expect(await get(url, 'evil.test')).toBe(421);
    expect(await get(url, `evil.test:${new URL(url).port}`)).toBe(421);
    expect(await get(`${origin}/`, host)).toBe(404);
    expect(await get(`${url}api/release`, host, 'POST')).toBe(405);
    expect((await locks.operators.inspect('order:7')).holders).toHaveLength(1);
    child!.child.kill('SIGINT');
    expect(await child!.ended).toMatchObject({ code: 130 });
    await lease.release();
  });

  it('starts with a diagnosis if Redis is down, and shows it on each view', async () => {
    const nothing = createServer().listen(0, '127.0.0.1');
    await once(nothing, 'listening');
    const { port } = nothing.address() as AddressInfo;
    nothing.close();
    const url = await serve(`redis://127.0.0.1:${port}`);
    const answer = await fetch(`${url}api/now`);
    const text = await answer.text();
    expect([answer.status, (JSON.parse(text) as { error: { code: string } }).error.code]).toEqual([
      503,
      'REDIS_UNAVAILABLE',
    ]);
    expect(text).not.toContain(String(port));
    expect((await fetch(url)).status).toBe(200);
    child!.child.kill('SIGINT');
    const { code, stderr } = await child!.ended;
    expect(code).toBe(130);
    expect(stderr).toMatch(/not connected|cannot be reached|ECONNREFUSED/);
    expect(stderr).toContain('→ Check the address');
  });
});
