import { LeaseLostError } from '../../../lib/core/api/lease-errors.js';
import { LockUnavailableError } from '../../../lib/core/api/errors.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { TRANSFER } from '../../../lib/redis/script/scripts.js';

const LONG = { leaseMs: 60_000, waitMs: 60_000 };
const HEARTBEAT_MS = 1_250 + 3_000;
const MODES: [string, TakeOptions][] = [
  ['exclusive', {}],
  ['reentrant', { mode: 'reentrant' }],
  ['write', { mode: 'write' }],
  ['read', { mode: 'read' }],
  ['semaphore', { permits: 3, count: 2 }],
];

describe('a lease that goes from process to process', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const expectNothingLeft = () => eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));

  it('goes on when the giver is killed right after, in each mode: same token, and nobody in between', async () => {
    const watch = await start();
    const [giver, taker] = await Promise.all([startProcess(2_000), startProcess(60_000)]);
    const all = await Promise.all(
      MODES.map(async ([name, options]) => {
        const given = await giver.ask('acquire', name, options);
        const waiting = watch.locks.acquire(name, { ...LONG, mode: 'write' }).catch((error: unknown) => error);
        return { name, options, given, waiting, text: await giver.ask('transfer', name) };
      }),
    );
    await giver.kill();
    for (const { name, given, text } of all) {
      expect((await watch.locks.inspect(name)).holders).toMatchObject([{ fencingToken: given.fencingToken }]);
      expect(await taker.ask('adopt', text, name)).toEqual(given);
    }
    await new Promise((resolve) => setTimeout(resolve, 2_500)); // longer than the leases were for the giver
    for (const { name, options, given, waiting } of all) {
      expect(await taker.ask('state', name)).toMatchObject({ isHeld: true });
      expect((await watch.locks.inspect(name)).holders).toMatchObject([
        { instanceId: taker.instanceId, fencingToken: given.fencingToken },
      ]);
      await taker.ask('release', name);
      const next = (await waiting) as { fencingToken?: number; release?: () => Promise<void> };
      if (options.permits === undefined) expect(next.fencingToken).toBeGreaterThan(given.fencingToken);
      await next.release?.();
    }
    await expectNothingLeft();
  });

  it('of several resources: all of them go together', async () => {
    const [giver, taker] = await Promise.all([startProcess(60_000), startProcess(60_000)]);
    const given = await giver.ask('acquire', ['a', 'b', 'c']);
    const text = await giver.ask('transfer', ['a', 'b', 'c']);
    await giver.kill();
    expect(await taker.ask('adopt', text, 'all')).toEqual(given);
    expect((await admin().keys('lock:{*')).sort()).toEqual(['lock:{a}', 'lock:{b}', 'lock:{c}']);
    await taker.ask('release', 'all');
    await expectNothingLeft();
  });

  it('the one who adopted it is killed: the next one has the lock when its lease is over', async () => {
    const { locks } = await start();
    const given = await locks.acquire('x', { ...LONG, leaseMs: 1_500 });
    const taker = await startProcess(60_000);
    await taker.ask('adopt', await given.transfer(), 'x');
    const waiting = locks.acquire('x', LONG);
    const from = performance.now();
    await taker.kill();
    const next = await waiting;
    expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
    expect(next.fencingToken).toBeGreaterThan(given.fencingToken);
    await next.release();
    await expectNothingLeft();
  });

  it.each([
    ['another secret', (text: string) => forge(text, (fields) => [fields[0], `${String(fields[1]).slice(0, -4)}AAAA`])],
    ['another resource', (text: string) => forge(text, (fields) => ['y', fields[1]])],
  ])('a text with %s adopts nothing, and takes nothing from the one whose it is', async (_what, forged) => {
    const [giver, taker] = [await start(), await start()];
    const given = await giver.locks.acquire('x', LONG);
    const text = await given.transfer();
    const error = await rejection(taker.locks.adopt(forged(text)));
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(String(error)).not.toContain(taker.store.clientId);
    const adopted = await taker.locks.adopt(text);
    expect(adopted.fencingToken).toBe(given.fencingToken);
    await adopted.release();
    await expectNothingLeft();
  });

  describe('on a network that loses replies', () => {
    it.each(MODES)(
      'transfer: whoever comes next (%s) never meets the giver, and has it after the lease at the latest',
      async (_mode, options) => {
        await using proxy = await TcpProxy.start(redis().port);
        const far = await start({ connection: proxy.url });
        const near = await start();
        const given = await take(far.locks, 'x', { ...LONG, ...options });
        const lost = proxy.loseReplyTo(TRANSFER.sha);
        await admin().eval(TRANSFER.lua, 1, 'nothing', 'a', 'b', 1, '', ''); // known, so that its reply is no NOSCRIPT
        const error = rejection(given.transfer({ leaseMs: 400 }));
        await lost;
        expect(await error).toBeInstanceOf(LockUnavailableError);
        // Nobody else is in before the giver is out, though its own lease had a minute to run.
        const next = await take(near.locks, 'x', {
          ...LONG,
          ...options,
          ...(options.permits ? { count: 3 } : { mode: 'write' }),
        });
        expect(given.isHeld()).toBe(false);
        await given.release();
        expect(await next.verify()).toBe(true);
        await next.release();
        await expectNothingLeft();
      },
    );

    it('transfer, with a connection that hangs: a late answer finds nobody who would adopt it, and gives it back', async () => {
      await using proxy = await TcpProxy.start(redis().port);
      const far = await start({ connection: proxy.url, defaults: { attemptTimeoutMs: 200 } });
      const near = await start();
      const given = await far.locks.acquire('x', LONG);
      proxy.blackHole('toClient', 'commands');
      expect(await rejection(given.transfer())).toBeInstanceOf(LockUnavailableError);
      const waiting = near.locks.acquire('x', LONG);
      proxy.heal();
      const next = await waiting;
      expect(given.isHeld()).toBe(false);
      expect(next.fencingToken).toBeGreaterThan(given.fencingToken);
      await next.release();
      await expectNothingLeft();
    });

    it.each(MODES)('adopt (%s): it asks again, and has the lease once', async (_mode, options) => {
      await using proxy = await TcpProxy.start(redis().port);
      const far = await start({ connection: proxy.url });
      const near = await start();
      const given = await take(near.locks, 'x', { ...LONG, ...options });
      const text = await given.transfer();
      const lost = proxy.loseReplyTo(TRANSFER.sha);
      const adopting = far.locks.adopt(text);
      await lost;
      const adopted = await adopting;
      expect(adopted.fencingToken).toBe(given.fencingToken);
      expect((await near.locks.inspect('x')).holders).toMatchObject([{ instanceId: far.instanceId }]);
      await adopted.release();
      await expectNothingLeft();
    });

    it('adopt, and gives up: nobody has the lock', async () => {
      await using proxy = await TcpProxy.start(redis().port);
      const far = await start({ connection: proxy.url, defaults: { attemptTimeoutMs: 200 } });
      const near = await start();
      const given = await near.locks.acquire('x', LONG);
      const text = await given.transfer();
      proxy.blackHole('toClient', 'commands');
      expect(await rejection(far.locks.adopt(text, { waitMs: 300 }))).toBeInstanceOf(LockUnavailableError);
      proxy.heal();
      const next = await near.locks.acquire('x', LONG);
      await next.release();
      await expectNothingLeft();
    });
  });
});

/** The text with other fields in the beginning of its only lease. */
function forge(text: string, change: (fields: unknown[]) => unknown[]): string {
  const [format, body] = text.split('.') as [string, string];
  const [fields] = JSON.parse(Buffer.from(body, 'base64url').toString()) as unknown[][];
  const forged = change(fields!);
  const changed = [[...forged, ...fields!.slice(forged.length)]];
  return `${format}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}`;
}
