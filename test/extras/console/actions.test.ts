import type { AddressInfo } from 'node:net';
import type { DynamicModule, INestApplication, PipeTransform } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule, type RedisLockConsoleOptions } from 'nestjs-redis-lock/console';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { PLATFORMS } from '../../nest/platforms.js';
import { Wrapping } from './console-apps.js';

const startApp = useApps();

const ALL = ['release', 'runJob', 'pauseJob', 'resumeJob'] as const;
const SENT = { 'content-type': 'application/json', 'x-lock-console': '1' };

/** Requests that a page of another site can make a browser send, and the header that they lack. */
const FORGED: [string, Record<string, string>][] = [
  ['no type', {}],
  ['the type of a form', { 'content-type': 'application/x-www-form-urlencoded' }],
  ['plain text', { 'content-type': 'text/plain' }],
  ['a form with files', { 'content-type': 'multipart/form-data; boundary=x' }],
  ['a type that begins alike', { ...SENT, 'content-type': 'application/jsonp' }],
  ['JSON behind plain text', { ...SENT, 'content-type': 'text/plain; application/json' }],
  ['no header of ours', { 'content-type': 'application/json' }],
  ['another value of it', { ...SENT, 'x-lock-console': '0' }],
  ['two values of it', { ...SENT, 'x-lock-console': '1, 1' }],
  ['a page of another site', { ...SENT, 'sec-fetch-site': 'cross-site' }],
  ['a page of the same site', { ...SENT, 'sec-fetch-site': 'same-site' }],
  ['a site that no browser says', { ...SENT, 'sec-fetch-site': 'CROSS-SITE' }],
  ['a form of another site', { 'content-type': 'text/plain', 'sec-fetch-site': 'cross-site' }],
  ['a script without a type', { 'x-lock-console': '1', 'sec-fetch-site': 'same-origin' }],
  ['an origin that has no name', { ...SENT, origin: 'null' }],
  ['a link that was followed', { 'content-type': 'text/plain', 'sec-fetch-site': 'none' }],
];
/** Rejected if the application lists the allowed origins. */
const OF_OTHER_ORIGINS: [string, Record<string, string>][] = [
  ['another origin, which is not allowed', { ...SENT, origin: 'https://evil.test' }],
  ['an origin that begins alike', { ...SENT, origin: 'https://ops.test.evil.test' }],
  ['another port', { ...SENT, origin: 'https://ops.test:8443' }],
  ['without TLS', { ...SENT, origin: 'http://ops.test' }],
];

const consoleOf = (options: Partial<RedisLockConsoleOptions> = {}): DynamicModule =>
  RedisLockConsoleModule.forRoot({ unguarded: 'I know', actions: ALL, who: () => 'ann', ...options });

type Answered = readonly [number, { error?: { code: string; message: string } } & Record<string, unknown>];

async function post(url: string, action: string, body: unknown, headers: Record<string, string> = SENT) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await fetch(`${url}/locks/api/${action}`, { method: 'POST', headers, body: text });
  const got = await answer.text();
  return [answer.status, JSON.parse(got === '' ? '{}' : got)] as Answered;
}

describe.each(PLATFORMS)('on %s', (_name, adapter) => {
  it.each([
    ...FORGED.map(([what, headers]) => [what, headers, {}] as const),
    ...OF_OTHER_ORIGINS.map(([what, headers]) => [what, headers, { allowedOrigins: ['https://ops.test'] }] as const),
  ])('a forged post is refused: %s', async (_what, headers, options) => {
    const { app, url } = await startApp({ adapter: adapter(), imports: [inMemory(), consoleOf(options)] });
    const lease = await app.get(RedisLockService).acquire('order:7');
    const body = JSON.stringify({ resource: 'order:7', fencingToken: lease.fencingToken, reason: 'x' });
    const answer = await fetch(`${url}/locks/api/release`, { method: 'POST', headers, body });
    expect([403, 415]).toContain(answer.status);
    expect((await app.get(RedisLockService).inspect('order:7')).holders).toHaveLength(1);
    await lease.release();
  });

  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s does nothing', async (method) => {
    const { app, url } = await startApp({ adapter: adapter(), imports: [inMemory(), consoleOf()] });
    const lease = await app.get(RedisLockService).acquire('order:7');
    const asked = { resource: 'order:7', fencingToken: String(lease.fencingToken), reason: 'x' };
    const body = ['GET', 'HEAD'].includes(method)
      ? undefined
      : JSON.stringify({ ...asked, fencingToken: lease.fencingToken });
    const address = `${url}/locks/api/release?${new URLSearchParams(asked).toString()}`;
    const answer = await fetch(address, { method, headers: SENT, ...(body !== undefined && { body }) });
    if (method !== 'OPTIONS') expect(answer.status).toBe(404);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    expect((await app.get(RedisLockService).inspect('order:7')).holders).toHaveLength(1);
    await lease.release();
  });

  it.each<[string, Record<string, string>]>([
    ['a browser without TLS, which says no site', { ...SENT, origin: 'http://10.0.0.7:3000' }],
    ['a browser with TLS', { ...SENT, 'sec-fetch-site': 'same-origin', origin: 'https://ops.test' }],
    ['a type with a charset', { ...SENT, 'content-type': 'application/json; charset=utf-8' }],
  ])('a post of the page is taken: %s', async (_what, headers) => {
    const { app, url } = await startApp({ adapter: adapter(), imports: [inMemory(), consoleOf()] });
    const lease = await app.get(RedisLockService).acquire('order:7');
    const body = { resource: 'order:7', fencingToken: lease.fencingToken, reason: 'OPS-17' };
    expect((await post(url, 'release', body, headers))[0]).toBe(200);
    await lease.release();
  });

  it('a lease is ended by its token, and the log says who did it, and why', async () => {
    const { app, url, log } = await startApp({
      adapter: adapter(),
      imports: [inMemory(), consoleOf()],
      configure: (starting) => {
        starting.useGlobalInterceptors(new Wrapping());
        starting.useGlobalPipes({ transform: () => ({ not: 'the body' }) } satisfies PipeTransform);
      },
    });
    const locks = app.get(RedisLockService);
    const lease = await locks.acquire('order:7');
    const { fencingToken } = lease;
    const body = { resource: 'order:7', fencingToken, reason: ' OPS-17 ' };

    const [late, { error: outOfDate }] = await post(url, 'release', { ...body, fencingToken: fencingToken + 64 });
    expect([late, outOfDate?.code]).toEqual([409, 'OUT_OF_DATE']);
    expect((await locks.inspect('order:7')).holders).toHaveLength(1);

    const [status, done] = await post(url, 'release', body);
    expect([status, done]).toEqual([
      200,
      expect.objectContaining({ resource: 'order:7', fencingToken, by: 'ann', reason: 'OPS-17' }),
    ]);
    expect((await locks.inspect('order:7')).holders).toEqual([]);
    const told = log.lines.map(({ message }) => message).filter((line) => line.includes('OPS-17'));
    expect(told).toEqual([expect.stringMatching(/order:7.*ann.*OPS-17/s)]);
    expect(told[0]).toContain(String(fencingToken));

    const [gone, { error }] = await post(url, 'release', body);
    expect([gone, error?.code]).toEqual([404, 'GONE']);
    await lease.release();
  });

  it.each<[string, string, unknown, number]>([
    ['no JSON', 'release', '{"resource":', 400],
    ['no object', 'release', '[1]', 400],
    ['no reason', 'release', { resource: 'x', fencingToken: 1 }, 400],
    ['a reason of spaces', 'release', { resource: 'x', fencingToken: 1, reason: '  ' }, 400],
    ['a reason that is long', 'release', { resource: 'x', fencingToken: 1, reason: 'x'.repeat(201) }, 400],
    ['a token that is a text', 'release', { resource: 'x', fencingToken: '1', reason: 'y' }, 400],
    ['no token', 'release', { resource: 'x', reason: 'y' }, 400],
    ['no resource', 'release', { fencingToken: 1, reason: 'y' }, 400],
    ['a pattern', 'release', { resource: 'x', pattern: '*', fencingToken: 1, reason: 'y' }, 400],
    ['a resource that cannot be', 'release', { resource: 'x\ud800', fencingToken: 1, reason: 'y' }, 400],
    ['a body that is too large', 'release', { resource: 'x'.repeat(5_000), fencingToken: 1, reason: 'y' }, 413],
    ['a job that is not known', 'runJob', { job: 'nightly' }, 404],
    ['a job that is not known', 'pauseJob', { job: 'nightly', forMs: 1_000 }, 404],
    ['a job that is not known', 'resumeJob', { job: 'nightly' }, 404],
    ['a time that cannot be', 'pauseJob', { job: 'nightly', forMs: -1 }, 400],
    ['an action that is not known', 'releaseAll', {}, 404],
  ])('%s is refused by %s', async (_what, action, body, status) => {
    const { url } = await startApp({ adapter: adapter(), imports: [inMemory(), consoleOf()] });
    const [got, answer] = await post(url, action, body);
    expect([got, answer]).toEqual([status, expect.any(Object)]);
  });

  it('what is not among the actions is refused, and so is a caller without a name', async () => {
    const { url } = await startApp({ adapter: adapter(), imports: [inMemory(), consoleOf({ actions: ['release'] })] });
    expect((await post(url, 'runJob', { job: 'x' }))[1].error?.code).toBe('NOT_ALLOWED');
    const nameless = await startApp({
      adapter: adapter(),
      imports: [inMemory(), consoleOf({ who: () => undefined, path: '/locks/' })],
    });
    const [status, { error }] = await post(nameless.url, 'pauseJob', { job: 'x' });
    expect([status, error?.code]).toEqual([403, 'WHO_UNKNOWN']);
  });

  describe('without a parser of the application, the console reads the body itself', () => {
    let app: INestApplication;
    let url: string;
    beforeEach(async () => {
      app = await NestFactory.create({ module: class Shop {}, imports: [inMemory(), consoleOf()] }, adapter(), {
        bodyParser: false,
        logger: false,
        forceCloseConnections: true,
      });
      await app.listen(0, '127.0.0.1');
      url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
    });
    afterEach(() => app.close());

    it('and does what it says', async () => {
      const lease = await app.get(RedisLockService).acquire('order:7');
      const body = { resource: 'order:7', fencingToken: lease.fencingToken, reason: 'OPS-17' };
      expect((await post(url, 'release', body))[0]).toBe(200);
      await lease.release();
    });

    it.each<[string, string, number]>([
      ['no JSON', '{"resource":', 400],
      ['no body', '', 400],
      ['too large', JSON.stringify({ resource: 'x'.repeat(100_000) }), 413],
    ])('%s: in pieces, without a length', async (_what, text, status) => {
      const body = new Blob([text]).stream();
      const answer = await fetch(`${url}/locks/api/release`, {
        method: 'POST',
        headers: SENT,
        body,
        duplex: 'half',
      } as RequestInit);
      expect([answer.status, await answer.json()]).toEqual([status, expect.any(Object)]);
    });
  });
});
