import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { LockHealth } from '../../../features/fleet/core/health/health-checks.js';
import { count } from '../../../kernel/util/plurals.js';
import { within } from '../../../kernel/util/promises.js';
import { quoteSome } from '../../../kernel/util/quoted.js';
import type { Keys } from '../../../redis/keys.js';
import type { MissingRights } from '../../../redis/script/missing-rights.js';
import { failing, type Finding, note, ok, unknown, warning } from './finding.js';

/** What to do about a problem of the health check, by its code. The health check itself names no remedy. */
const FIXES: Readonly<Record<string, string>> = {
  READONLY: 'Connect to the primary, or write the connection by { sentinels, name } or { cluster }.',
  NOAUTH: 'Put the user and the password into the connection.',
  WRONGPASS: 'Put the right user and password into the connection.',
  OOM: 'Raise maxmemory, or remove other data.',
  LOADING: 'Wait until Redis has loaded its data.',
  BUSY: 'End the script with SCRIPT KILL.',
  MISCONF: 'Check the Redis log and disk.',
  NOREPLICAS: 'Start the replicas, or lower min-replicas-to-write.',
  CLUSTERDOWN: 'See CLUSTER INFO and CLUSTER NODES.',
  NO_SERVER: 'See CLUSTER INFO and CLUSTER NODES.',
  WRONGTYPE: 'Give the locks a keyPrefix of their own.',
  SLOW: 'Check the load of Redis: SLOWLOG GET, INFO commandstats.',
  TIMEOUT: 'Check the load of Redis: SLOWLOG GET, INFO commandstats. Or set a longer --timeout.',
};
const OTHER_FIX = 'See the log of Redis.';
/** Checks of their own tell of these, and with the remedy. */
const TOLD_ELSEWHERE = ['NOPERM', 'NO_INBOX', 'INBOX_REFUSED', 'INBOX_LOSES', 'EVICTION'];

/** Whether a lock could be had now: a script that writes has tried. */
export function findHealth({ status, problems, topology, servers }: LockHealth): Finding[] {
  const others = problems.filter(({ code }) => !TOLD_ELSEWHERE.includes(code));
  const where = servers.total > 1 ? `, ${servers.up} of ${count(servers.total, 'server')} up` : '';
  if (status !== 'down') return [ok('locks', `Redis accepts locks (${topology}${where}).`)];
  const found = others.map(({ code, message }) => failing('locks', message, FIXES[code] ?? OTHER_FIX));
  if (found.length > 0) return found;
  return [failing('locks', 'Locks are unavailable.', 'See the other lines.')];
}

/** @param user as Redis calls it, if it tells that */
export function findRights({ needed, helpful, isOfCluster }: MissingRights, user: string | undefined): Finding[] {
  const found: Finding[] = [];
  const command = (rules: readonly string[]): string => `ACL SETUSER ${user ?? '<user>'} ${rules.join(' ')}`;
  if (isOfCluster) {
    const fix = 'Write the connection as { cluster: [...] }, in a module for --config.';
    found.push(failing('cluster', 'This server is a node of a cluster, and the connection names one Redis.', fix));
  }
  if (needed.length > 0) found.push(failing('rights', 'The Redis user lacks rights that locks need.', command(needed)));
  if (helpful.length > 0) {
    const message = 'The Redis user lacks optional rights. Waiters may be notified late, and errors have less detail.';
    found.push(warning('rights', message, command(helpful)));
  }
  if (needed.length + helpful.length === 0) {
    found.push(ok('rights', user === undefined ? 'All that locks need.' : `The user ${user} has all that locks need.`));
  }
  return found;
}

const HEARD_WITHIN_MS = 2_000;

/** Sends a message to a channel of the locks, and listens for it, as a waiter would. */
export async function findMessages(client: Redis, keys: Keys): Promise<Finding> {
  const channel = keys.inbox(`doctor/${randomBytes(6).toString('base64url')}`);
  // Connections of their own: where Redis does not answer, what else is asked must not suffer.
  const [listener, sender] = [1, 2].map(() => client.duplicate({ lazyConnect: true, retryStrategy: () => null })) as [
    Redis,
    Redis,
  ];
  for (const each of [listener, sender]) each.on('error', () => {});
  const fix = `Give the Redis user +subscribe, +publish and &${keys.prefix}:*. A proxy in between has to let messages pass.`;
  try {
    await Promise.all([listener.connect(), sender.connect()]);
    await listener.subscribe(channel);
    const sentAt = performance.now();
    const heard = new Promise<number>((resolve) => listener.once('message', () => resolve(performance.now() - sentAt)));
    // Its answer does not matter, a refusal does.
    const refused = new Promise<never>((_, reject) => void sender.publish(channel, 'doctor').catch(reject));
    const afterMs = await within(HEARD_WITHIN_MS, Promise.race([heard, refused]));
    if (afterMs !== undefined) return ok('messages', `A message arrived after ${afterMs.toFixed(1)} ms.`);
    return warning('messages', 'A message was published but did not arrive: waiters get contended locks late.', fix);
  } catch (error) {
    const { message } = error as Error;
    return warning('messages', `No messages can be received, so waiters get contended locks late: ${message}`, fix);
  } finally {
    listener.disconnect();
    sender.disconnect();
  }
}

/** How many keys of the prefix are looked at on each server: steps of a thousand of the whole key space. */
const STEPS = 100;

/** Looks whether another application keeps keys under the prefix. Ours have braces, or are one of few names. */
export async function findForeignKeys(
  servers: Iterable<{ scan(pattern: string): AsyncIterable<string[]> }>,
  keys: Keys,
): Promise<Finding> {
  const { prefix } = keys;
  const own = [`${prefix}:{`, `${prefix}:fence`, `${prefix}:jobs`, `${prefix}:roll`];
  const foreign = new Set<string>();
  let isWhole = true;
  try {
    for (const server of servers) {
      let steps = 0;
      for await (const found of server.scan(`${prefix.replace(/[*?[\]\\]/g, '\\$&')}:*`)) {
        for (const key of found) if (!own.some((each) => key.startsWith(each))) foreign.add(key);
        if (++steps < STEPS) continue;
        isWhole = false;
        break;
      }
    }
  } catch (error) {
    return unknown('prefix', `Cannot tell which keys begin with ${prefix}:`, '+scan', error);
  }
  const looked = isWhole ? '' : ` Only ${STEPS * 1_000} keys were checked.`;
  if (foreign.size === 0) return ok('prefix', `No other application has keys that begin with ${prefix}:.${looked}`);
  const fix = 'Give one of them another prefix. For now, rights and SCAN by this prefix apply to both.';
  return note(
    'prefix',
    `Another application has keys that begin with ${prefix}:, such as ${quoteSome([...foreign], 2)}.${looked}`,
    fix,
  );
}

/** Which processes listen on the prefix: one of another environment shares their locks. */
export async function findInstances(clients: readonly Redis[], keys: Keys, ownInstanceId: string): Promise<Finding> {
  const start = keys.inbox('');
  const instances = new Set<string>();
  try {
    for (const client of clients) {
      const channels = (await client.pubsub('CHANNELS', `${start.replace(/[*?[\]\\]/g, '\\$&')}*`)) as string[];
      for (const channel of channels) instances.add(channel.slice(start.length).replace(/\/[^/]*$/, ''));
    }
  } catch (error) {
    return unknown('instances', 'Cannot tell which processes use the prefix.', '+pubsub|channels', error);
  }
  instances.delete(ownInstanceId);
  instances.delete('doctor');
  if (instances.size === 0) return note('instances', 'No other process listens on the prefix now.');
  return ok('instances', `${count(instances.size, 'instance')} on the prefix: ${quoteSome([...instances], 5)}.`);
}
