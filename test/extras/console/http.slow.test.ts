import { type CanActivate, type DynamicModule, type ExecutionContext, Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { PLATFORMS } from '../../nest/platforms.js';
import { SURROUNDINGS, useSurroundings } from './console-apps.js';

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'";

/** Admits anyone but the stranger. */
@Injectable()
class Allowed implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    return headers['x-user'] !== 'stranger';
  }
}

const CONSOLE: DynamicModule = RedisLockConsoleModule.forRoot({
  path: 'ops/locks',
  guards: [Allowed],
  actions: ['release'],
  who: ({ headers }: { headers: Record<string, string> }) => headers['x-user'],
});

const start = useSurroundings();

describe.each(PLATFORMS)('on %s', (platform, adapter) => {
  it.each(SURROUNDINGS)('the console is the same with %j', async (surroundings) => {
    const { app, page } = await start(adapter(), CONSOLE, surroundings);
    const lease = await app.get(RedisLockService).acquire('<img src=x onerror=alert(1)>');

    const moved = await fetch(`${page}?view=now`, { redirect: 'manual' });
    expect([moved.status, moved.headers.get('location')]).toEqual([308, 'locks/?view=now']);
    const shell = await fetch(`${page}?view=now`);
    expect([shell.status, shell.url]).toEqual([200, `${page}/?view=now`]);
    expect(shell.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await shell.text()).toMatch(/^<!doctype html>/i);

    for (const [file, type] of [
      ['console.js', 'text/javascript; charset=utf-8'],
      ['console.css', 'text/css; charset=utf-8'],
    ]) {
      const got = await fetch(`${page}/${file}`);
      expect([got.status, got.headers.get('content-type'), got.headers.get('cache-control')]).toEqual([
        200,
        type,
        'no-cache',
      ]);
      const again = await fetch(`${page}/${file}`, { headers: { 'if-none-match': got.headers.get('etag')! } });
      expect([again.status, await again.text()]).toEqual([304, '']);
    }

    const listed = await fetch(`${page}/api/locks`);
    expect(listed.status).toBe(200);
    const { headers } = listed;
    const { helmet } = surroundings;
    expect(headers.get('x-dns-prefetch-control')).toBe(helmet ? 'off' : null);
    expect(headers.get('content-encoding')).toBe(helmet && platform === 'Express' ? 'gzip' : null);
    expect([headers.get('content-type'), headers.get('cache-control'), headers.get('content-security-policy')]).toEqual(
      ['application/json; charset=utf-8', 'no-store', CSP],
    );
    expect([headers.get('x-content-type-options'), headers.get('referrer-policy')]).toEqual(['nosniff', 'no-referrer']);
    expect(Number(headers.get('x-lock-console-now'))).toBeGreaterThan(0);
    const body = (await listed.json()) as { wrapped?: true; rows: { resource: string; fencingToken: number }[] };
    expect(Object.keys(body)).toEqual(['schemaVersion', 'service', 'at', 'fleet', 'rows', 'total', 'groups']);
    expect(body.rows).toMatchObject([{ resource: '<img src=x onerror=alert(1)>', fencingToken: lease.fencingToken }]);

    const again = await fetch(`${page}/api/locks`, { headers: { 'if-none-match': headers.get('etag')! } });
    expect([again.status, await again.text()]).toEqual([304, '']);

    const released = await fetch(`${page}/api/release`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-lock-console': '1', 'x-user': 'ann' },
      body: JSON.stringify({ resource: lease.resource, fencingToken: lease.fencingToken, reason: 'a test' }),
    });
    expect([released.status, await released.json()]).toEqual([
      200,
      expect.objectContaining({ by: 'ann', reason: 'a test', fencingToken: lease.fencingToken }),
    ]);

    const strange = await fetch(`${page}/api/now`, { headers: { 'x-user': 'stranger' } });
    expect(strange.status).toBe(403);
    await lease.release();
  });
});
