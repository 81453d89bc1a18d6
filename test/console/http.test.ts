import {
  type CanActivate,
  type DynamicModule,
  type ExecutionContext,
  Injectable,
  type INestApplication,
  VersioningType,
} from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { inMemory, PLATFORMS, useApps } from '../nest/nest-apps.js';
import { likeHelmet, useProxies, Wrapping } from './console-apps.js';

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'";

/** Lets in who says so. */
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

const startApp = useApps();
const startProxy = useProxies();

interface Surroundings {
  readonly prefix: string;
  readonly proxy: 'none' | 'strips' | 'keeps';
  readonly helmet: boolean;
}

const SURROUNDINGS: Surroundings[] = ['', 'v1/app'].flatMap((prefix) =>
  (['none', 'strips', 'keeps'] as const).flatMap((proxy) => [false, true].map((helmet) => ({ prefix, proxy, helmet }))),
);

describe.each(PLATFORMS)('on %s', (_name, adapter) => {
  it.each(SURROUNDINGS)('the console is the same with %j', async ({ prefix, proxy, helmet }) => {
    const whole = [proxy === 'keeps' ? 'edge' : '', prefix].filter(Boolean).join('/');
    const { app, url } = await startApp({
      adapter: adapter(),
      imports: [inMemory(), CONSOLE],
      configure: (starting: INestApplication) => {
        if (whole !== '') starting.setGlobalPrefix(whole);
        if (helmet) starting.use(likeHelmet);
        starting.useGlobalInterceptors(new Wrapping());
        starting.enableVersioning({ type: VersioningType.URI, defaultVersion: '7' });
      },
    });
    const base = proxy === 'none' ? url : await startProxy(url, proxy);
    const page = `${base}/${prefix === '' ? '' : `${prefix}/`}ops/locks`;
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
    expect([headers.get('content-type'), headers.get('cache-control'), headers.get('content-security-policy')]).toEqual(
      ['application/json; charset=utf-8', 'no-store', CSP],
    );
    expect([headers.get('x-content-type-options'), headers.get('referrer-policy')]).toEqual(['nosniff', 'no-referrer']);
    expect(Number(headers.get('x-lock-console-now'))).toBeGreaterThan(0);
    const body = (await listed.json()) as { wrapped?: true; rows: { resource: string; fencingToken: number }[] };
    expect(Object.keys(body)).toEqual(['schemaVersion', 'service', 'at', 'fleet', 'rows', 'total', 'groups']);
    expect(body.rows).toMatchObject([{ resource: '<img src=x onerror=alert(1)>', fencingToken: lease.fencingToken }]);

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
