import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { count } from '../../../kernel/util/plurals.js';
import { within } from '../../../kernel/util/promises.js';
import { quoteSome } from '../../../kernel/util/quoted.js';
import type { Keys } from '../../../redis/keys.js';
import { TRY_INFIX } from '../frame/connection.js';
import type { MissingRights } from '../../../redis/script/missing-rights.js';
import type { Survey } from '../../../features/fleet/core/findings/survey.js';
import { failing, type Check, note, ok, unknown, warning } from './check.js';

/** A script that writes has tried it. The findings name what is wrong. */
export function checkHealth({ status, topology, servers }: Survey['health']): Check[] {
  const where = servers.total > 1 ? `, ${servers.up} of ${count(servers.total, 'server')} up` : '';
  const isUp = status === 'up' || status === 'degraded';
  return isUp ? [ok('locks', `Redis accepts locks (${topology}${where}).`)] : [];
}

/** @param user as Redis calls it, if it tells that */
export function checkRights({ needed, helpful, isOfCluster }: MissingRights, user: string | undefined): Check[] {
  const found: Check[] = [];
  const command = (rules: readonly string[]): string => `ACL SETUSER ${user ?? '<user>'} ${rules.join(' ')}`;
  if (isOfCluster) {
    const fix =
      'Export the connection as { cluster: [...] } from a module, and pass the path of the module with --config.';
    found.push(
      failing('cluster', 'This server is a node of a Redis Cluster, but the connection names a single Redis.', fix),
    );
  }
  if (needed.length > 0)
    found.push(failing('rights', 'The Redis user lacks permissions that locks need.', command(needed)));
  if (helpful.length > 0) {
    const message =
      'The Redis user lacks optional permissions. Waiters may be notified late, and errors have less detail.';
    found.push(warning('rights', message, command(helpful)));
  }
  if (needed.length + helpful.length === 0) {
    found.push(
      ok(
        'rights',
        user === undefined
          ? 'All permissions that locks need.'
          : `The user ${user} has all permissions that locks need.`,
      ),
    );
  }
  return found;
}

const HEARD_WITHIN_MS = 2_000;

/** Sends a message to a channel of the locks, and listens for it, as a waiter would. */
export async function checkMessages(client: Redis, keys: Keys): Promise<Check> {
  const channel = keys.inbox(`doctor/${randomBytes(6).toString('base64url')}`);
  // Connections of their own: where Redis does not answer, what else is asked must not suffer.
  const [listener, sender] = [1, 2].map(() => client.duplicate({ lazyConnect: true, retryStrategy: () => null })) as [
    Redis,
    Redis,
  ];
  for (const each of [listener, sender]) each.on('error', () => {});
  const fix = `Give the Redis user +subscribe, +publish and &${keys.prefix}:*. If there is a proxy in between, it must let pub/sub messages pass.`;
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
export async function checkForeignKeys(
  servers: Iterable<{ scan(pattern: string): AsyncIterable<string[]> }>,
  keys: Keys,
): Promise<Check> {
  const { prefix } = keys;
  const own = [`${prefix}:{`, `${prefix}:fence`, `${prefix}:jobs`, `${prefix}:roll`, prefix + TRY_INFIX];
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
    return unknown('prefix', `Cannot check which keys start with ${prefix}:`, '+scan', error);
  }
  const looked = isWhole ? '' : ` Only ${STEPS * 1_000} keys were checked.`;
  if (foreign.size === 0) return ok('prefix', `No other application has keys that start with ${prefix}:.${looked}`);
  const fix =
    'Give one of the applications another keyPrefix. Until then, ACL rules and scans for this prefix match the keys of both.';
  return note(
    'prefix',
    `Another application has keys that start with ${prefix}:, such as ${quoteSome([...foreign], 2)}.${looked}`,
    fix,
  );
}

/** Connections of an instance have this name, and its id behind it. */
const CLIENT_NAME = / name=nestjs-redis-lock:(\S+) /;

/**
 * The processes that use the prefix: one of another environment shares their locks. Connections without a subscription
 * are only found by CLIENT LIST, which is dangerous and slow: no other command uses it.
 */
export async function checkInstances(clients: readonly Redis[], keys: Keys, ownInstanceId: string): Promise<Check[]> {
  const start = keys.inbox('');
  const instances = new Set<string>();
  const unsubscribed = new Set<string>();
  try {
    for (const client of clients) {
      const channels = (await client.pubsub('CHANNELS', `${start.replace(/[*?[\]\\]/g, '\\$&')}*`)) as string[];
      for (const channel of channels) instances.add(channel.slice(start.length).replace(/\/[^/]*$/, ''));
    }
    for (const client of clients) {
      const lines = await client.client('LIST').catch(() => '');
      for (const line of String(lines).split('\n')) unsubscribed.add(CLIENT_NAME.exec(line)?.[1] ?? '');
    }
  } catch (error) {
    return [unknown('instances', 'Cannot list the processes that use the prefix.', '+pubsub|channels', error)];
  }
  for (const each of [ownInstanceId, 'doctor']) instances.delete(each);
  for (const each of [ownInstanceId, '', ...instances]) unsubscribed.delete(each);
  const found =
    instances.size === 0
      ? note('instances', `No other process is subscribed under the prefix ${keys.prefix} now.`)
      : ok('instances', `${count(instances.size, 'instance')} on the prefix: ${quoteSome([...instances], 5)}.`);
  if (unsubscribed.size === 0) return [found];
  const message = `These instances have no subscription under this prefix: ${quoteSome([...unsubscribed], 5)}. They use another prefix, or their Redis user has no permission to subscribe.`;
  const fix = `If they use this prefix, give their Redis user the channels &${keys.prefix}:*. Without messages, their waiters get locks late.`;
  return [found, note('instances', message, fix)];
}
