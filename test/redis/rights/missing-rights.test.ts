import { Redis } from 'ioredis';
import { commandsInScripts, findMissingRights } from '../../../lib/redis/script/missing-rights.js';
import { PROBE } from '../../../lib/redis/script/scripts.js';
import { eventually } from '../../support/expect/eventually.js';
import { CommandMonitor } from '../../support/redis/command-monitor.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { keysWithTtl, useAdmin } from '../../support/redis/lock-instances.js';
import { documentedUser } from '../../support/redis/lock-user.js';
import { useRedis } from '../../support/redis/redis-server.js';

const { password, rules } = documentedUser();
/** INFO reports eviction, which concerns no rights; the quarantine needs it. */
const RIGHTS = rules.filter((rule) => /^[+~&]/.test(rule) && rule !== '+info');
/** Rights for commands outside of the scripts, which fail there. */
const ELSEWHERE = ['+subscribe', '+client|setname', '+scan'];
const HISTORY = ['+lpush', '+lrange', '+lrem', '+lset', '+ltrim'];
const HELPFUL = ['&lock:*', '+hrandfield', ...HISTORY, '+publish', '+pubsub|channels', '+pubsub|numsub'];
const PROBED = RIGHTS.filter((right) => !ELSEWHERE.includes(right));

describe('the probe for missing rights', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const clients: Redis[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.disconnect()));

  const use = {
    probeKey: 'lock:{probe}:probe',
    fence: 'lock:fence',
    channel: 'lock:inbox:me',
    prefix: 'lock',
    isDurable: false,
    isQuarantined: false,
  };

  async function probeAs(allowed: readonly string[], changes: Partial<typeof use> = {}) {
    const denied = rules.filter((rule) => rule.startsWith('-') || rule === 'resetchannels');
    await admin().call('ACL', 'SETUSER', 'app', 'reset', 'on', `>${password}`, ...denied, ...allowed);
    const url = redis().url.replace('://', `://app:${password}@`);
    const client = new Redis(url, { enableReadyCheck: false });
    clients.push(client);
    await client.ping().catch(() => undefined); // connected, though the user may not
    await admin().call('ACL', 'LOG', 'RESET');
    const { needed, helpful } = await findMissingRights(client, { ...use, ...changes });
    return { needed, helpful };
  }

  it('finds nothing for the user of docs/operations/acl.md, tries nothing else, and leaves nothing', async () => {
    expect(await probeAs(RIGHTS)).toEqual({ needed: [], helpful: [] });
    expect(await admin().call('ACL', 'LOG')).toEqual([]);
    expect(await admin().keys('*')).toEqual([]);
  });

  it.each(PROBED)('without %s names it, and leaves nothing that stays', async (right) => {
    const found = await probeAs(RIGHTS.filter((other) => other !== right));
    const isHelpful = HELPFUL.includes(right);
    expect(found).toEqual({ needed: isHelpful ? [] : [right], helpful: isHelpful ? [right] : [] });
    for (const ttl of Object.values(await keysWithTtl(admin()))) expect(ttl).toBeGreaterThan(0);
  });

  it('names several at once', async () => {
    const left = RIGHTS.filter((right) => !['+get', '+hscan', '+publish', '+evalsha'].includes(right));
    expect(await probeAs(left)).toEqual({ needed: ['+evalsha', '+get', '+hscan'], helpful: ['+publish'] });
  });

  it('names commands that write even if the keys are missing', async () => {
    const left = RIGHTS.filter((right) => !['~lock:*', '+hset', '+incrby'].includes(right));
    expect(await probeAs(left)).toEqual({ needed: ['+hset', '+incrby', '~lock:*'], helpful: [] });
  });

  it.each([
    ['INFO', { isQuarantined: true }, '+info'],
    ['WAIT', { isDurable: true }, '+wait'],
  ])('names %s only for the option that needs it', async (_, changes, rule) => {
    expect(await probeAs(RIGHTS, changes)).toEqual({ needed: [rule], helpful: [] });
    expect(await probeAs([...RIGHTS, rule], changes)).toEqual({ needed: [], helpful: [] });
  });

  it('names the keys and channels by their prefix, as a pattern of the ACL', async () => {
    const changes = {
      prefix: 'app:[1]',
      probeKey: 'app:[1]:{probe}:probe',
      fence: 'app:[1]:fence',
      channel: 'app:[1]:x',
    };
    const found = await probeAs(RIGHTS, changes);
    expect(found).toEqual({ needed: ['~app:\\[1\\]:*'], helpful: ['&app:\\[1\\]:*'] });
    expect(await probeAs([...RIGHTS, ...found.needed, ...found.helpful], changes)).toEqual({ needed: [], helpful: [] });
  });

  it('misses no key: neither that of a lock nor the fence', async () => {
    const others = RIGHTS.filter((right) => right !== '~lock:*');
    expect(await probeAs([...others, '~lock:{*'])).toEqual({ needed: ['~lock:*'], helpful: [] });
    expect(await probeAs([...others, '~lock:fence'])).toEqual({ needed: ['~lock:*'], helpful: [] });
    expect(await probeAs([...others, '~lock:{*', '~lock:fence'])).toEqual({ needed: [], helpful: [] });
  });

  it('knows every command of the scripts: those of docs/operations/acl.md, and how to try each', async () => {
    const documented = PROBED.filter((right) => right.startsWith('+') && !right.startsWith('+eval'));
    expect([...commandsInScripts(false).keys()].map((command) => `+${command}`).sort()).toEqual(documented.sort());
    const commands = [...commandsInScripts(true).keys()].join(' ');
    const names = [use.probeKey, use.fence, use.channel, commands];
    expect(await admin().eval(PROBE.lua, 0, ...names)).toEqual([]);
    expect(await admin().eval(PROBE.lua, 0, ...names.slice(0, 3), `${commands} sort`)).toEqual([
      'sort',
      'ERR probe.lua does not know how to try it',
    ]);
  });

  it('declares the keys that it touches, as strict servers demand', async () => {
    const touched = new Set<string>();
    const declared: string[][] = [];
    const monitor = await CommandMonitor.start(admin(), (sent, source) => {
      if (source === 'lua') for (const arg of sent) if (/^lock:(\{|fence)/.test(arg)) touched.add(arg);
      if (/^eval$/i.test(sent[0]!)) declared.push(sent.slice(3, 3 + Number(sent[2])));
    });
    await probeAs(RIGHTS);
    await monitor.seenAll();
    await monitor[Symbol.asyncDispose]();
    expect(declared).toEqual([[...touched]]);
    expect(declared).toEqual([[use.probeKey, use.fence]]);
  });

  it('is one round trip: everything is sent before the first reply', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const client = new Redis(proxy.url);
    clients.push(client);
    await client.ping();
    await admin().config('RESETSTAT');
    proxy.blackHole('toClient');
    void findMissingRights(client, { ...use, isDurable: true });
    await eventually(async () => {
      const stats = await admin().info('commandstats');
      for (const command of ['eval', 'evalsha', 'wait']) expect(stats).toMatch(`cmdstat_${command}:calls=1,`);
    });
  });

  it('finds nothing without a connection: other calls report why', async () => {
    const client = new Redis(redis().url, { disconnectTimeout: 0 });
    clients.push(client);
    await client.ping();
    client.disconnect();
    expect(await findMissingRights(client, { ...use, isDurable: true })).toMatchObject({ needed: [], helpful: [] });
  });
});
