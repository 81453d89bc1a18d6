import { type CanActivate, Controller, Get, Inject, Injectable, Module, type Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule, type RedisLockConsoleOptions } from 'nestjs-redis-lock/console';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { PLATFORMS } from '../../nest/platforms.js';

const startApp = useApps();
const forRoot = (options: unknown) => RedisLockConsoleModule.forRoot(options as RedisLockConsoleOptions);

class Guard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

describe('the options', () => {
  it.each<[object, RegExp]>([
    [{}, /guards of .* is missing.*unguarded: 'I know'/],
    [{ guards: [] }, /guards of .* is missing/],
    [{ guards: Guard }, /must be a list of guards/],
    [{ guards: ['AdminGuard'] }, /must be a list of guards/],
    [{ unguarded: true }, /unguarded of .* must be 'I know', not true/],
    [{ guards: [Guard], unguarded: 'I know' }, /unguarded of .* is for a console without guards/],
    [{ guards: [Guard], actions: ['release'] }, /who of .* is missing/],
    [{ guards: [Guard], actions: ['releaseAll'], who: () => 'ann' }, /actions of .*"release".*not "releaseAll"/],
    [{ guards: [Guard], actions: 'release', who: () => 'ann' }, /actions of .* must be a list/],
    [{ guards: [Guard], path: '' }, /path .*ops\/locks/],
    [{ guards: [Guard], path: 'ops/:id' }, /path/],
    [{ guards: [Guard], path: 'ops/../locks' }, /path/],
    [{ guards: [Guard], path: 'ops//locks' }, /path/],
    [{ guards: [Guard], path: 'locks?x' }, /path/],
    [{ guards: [Guard], services: [] }, /services of .* one or more names/],
    [{ guards: [Guard], services: ['a', 'a'] }, /services of .* each once/],
    [{ guards: [Guard], allowedOrigins: ['https://ops.test/'] }, /allowedOrigins of .*without a path/],
    [{ guards: [Guard], allowedOrigins: ['ops.test'] }, /allowedOrigins/],
    [{ guards: [Guard], titel: 'x' }, /titel/],
  ])('%j is refused at boot', (options, message) => {
    expect(() => forRoot(options)).toThrow(
      expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', message: expect.stringMatching(message) as string }),
    );
  });

  it('an application without such a lock service does not start', async () => {
    await expect(
      startApp({ imports: [inMemory(), forRoot({ guards: [Guard], services: ['billing'] })] }),
    ).rejects.toThrow(/no RedisLockModule is registered with service: "billing"/);
  });
});

it('a guard gets the exports of the modules in imports', async () => {
  @Injectable()
  class Users {
    readonly admin: string = 'ann';
  }
  @Module({ providers: [Users], exports: [Users] })
  class UsersModule {}
  @Injectable()
  class AdminGuard implements CanActivate {
    constructor(@Inject(Users) private readonly users: Users) {}
    canActivate(): boolean {
      return this.users.admin === 'bob';
    }
  }
  const { url } = await startApp({
    imports: [inMemory(), forRoot({ guards: [AdminGuard], imports: [UsersModule] })],
  });
  for (const path of ['', '/', '/console.js', '/api/now'])
    expect((await fetch(`${url}/locks${path}`)).status).toBe(403);
});

it('Swagger lists the routes of the application, and none of the console', async () => {
  @Controller('orders')
  class Orders {
    @Get()
    list(): string[] {
      return [];
    }
  }
  const { app } = await startApp({ imports: [inMemory(), forRoot({ guards: [Guard] })], controllers: [Orders] });
  const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
  expect(Object.keys(paths)).toEqual(['/orders']);
});

it('several lock services can be selected, and each is shown by its name', async () => {
  const { app, url } = await startApp({
    imports: [
      inMemory(),
      inMemory({ service: 'billing' }),
      forRoot({ guards: [Guard], services: ['default', 'billing'] }),
    ],
  });
  const billing = app.get<RedisLockService>('RedisLockService:billing');
  const lease = await billing.acquire('invoice:1');
  const seen = async (query: string) => {
    const body = (await (await fetch(`${url}/locks/api/locks${query}`)).json()) as {
      service: string;
      rows: { resource: string }[];
    };
    return [body.service, body.rows.map(({ resource }) => resource)];
  };
  expect(await seen('')).toEqual(['default', []]);
  expect(await seen('?service=billing')).toEqual(['billing', ['invoice:1']]);
  const session = (await (await fetch(`${url}/locks/api/session`)).json()) as object;
  expect(session).toMatchObject({ services: ['default', 'billing'], actions: [], title: 'Locks' });
  await lease.release();
});

it('a test double answers that it keeps no state', async () => {
  const { url } = await startApp({
    imports: [inMemory(), forRoot({ guards: [Guard] })],
    override: (builder) => builder.overrideProvider(RedisLockService as unknown as Type).useValue({ using: () => {} }),
  });
  const answer = await fetch(`${url}/locks/api/now`);
  expect([answer.status, await answer.json()]).toEqual([
    501,
    { error: { code: 'NOT_SUPPORTED', message: expect.stringContaining('test double') as string } },
  ]);
});

describe.each(PLATFORMS)('jobs, on %s', (_name, adapter) => {
  it('are paused, run and resumed for the whole fleet, by the name of who asks', async () => {
    const runs: string[] = [];
    @Injectable()
    class Reports {
      @SingletonCron('0 0 1 1 *', { name: 'nightly' })
      nightly(): void {
        runs.push('nightly');
      }
    }
    const { url, log } = await startApp({
      adapter: adapter(),
      providers: [Reports],
      imports: [
        inMemory(),
        ScheduleModule.forRoot(),
        forRoot({ guards: [Guard], actions: ['runJob', 'pauseJob', 'resumeJob'], who: () => 'ann' }),
      ],
    });
    const post = async (action: string, body: object) => {
      const answer = await fetch(`${url}/locks/api/${action}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-lock-console': '1' },
        body: JSON.stringify(body),
      });
      return [answer.status, await answer.json()] as [number, Record<string, unknown>];
    };
    const state = async () => {
      const body = (await (await fetch(`${url}/locks/api/jobs`)).json()) as { rows: Record<string, unknown>[] };
      return body.rows.map(({ name, state: is }) => [name, is]);
    };
    expect(await state()).toEqual([['nightly', 'waits']]);
    expect(await post('resumeJob', { job: 'nightly' })).toEqual([
      409,
      { error: { code: 'NOT_PAUSED', message: expect.any(String) as string } },
    ]);
    const [paused, { pause }] = await post('pauseJob', { job: 'nightly', forMs: 60_000, reason: 'OPS-17' });
    expect([paused, pause]).toEqual([200, expect.objectContaining({ by: 'ann', reason: 'OPS-17' })]);
    expect(await state()).toEqual([['nightly', 'paused']]);
    expect(await post('runJob', { job: 'nightly', reason: 'OPS-18' })).toEqual([
      200,
      expect.objectContaining({ job: 'nightly', by: 'ann' }),
    ]);
    expect((await post('resumeJob', { job: 'nightly', reason: 'OPS-19' }))[0]).toBe(200);
    expect(await state()).toEqual([['nightly', 'waits']]);
    expect(runs).toEqual(['nightly']);
    const job = (await (await fetch(`${url}/locks/api/job?name=nightly`)).json()) as { runs: { by?: string }[] };
    expect(job.runs.map(({ by }) => by)).toEqual(['ann']);
    const lines = log.lines.map(({ message }) => message).join('\n');
    for (const ticket of ['OPS-17', 'OPS-18', 'OPS-19']) expect(lines).toMatch(new RegExp(`ann.*${ticket}`, 's'));
  });
});

it.each<[exclude: string[], isWhole: boolean]>([
  [['ops/locks'], false],
  [['ops/locks', 'ops/locks/*path'], true],
  [['health'], true],
])('a global prefix that excludes %j is warned of, unless the page finds its data: %j', async (exclude, isWhole) => {
  const { url, log } = await startApp({
    imports: [inMemory(), forRoot({ path: 'ops/locks', guards: [Guard] })],
    configure: (app) => void app.setGlobalPrefix('api', { exclude }),
  });
  const told = log.at('warn').filter((line) => line.includes('global prefix'));
  expect(told).toEqual(isWhole ? [] : [expect.stringContaining("Exclude all of it: ['ops/locks', 'ops/locks/*path']")]);
  const at = exclude[0] === 'health' ? '/api/ops/locks' : '/ops/locks';
  expect([(await fetch(`${url}${at}/`)).status, (await fetch(`${url}${at}/api/now`)).status]).toEqual([
    200,
    isWhole ? 200 : 404,
  ]);
});
