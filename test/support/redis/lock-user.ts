import { readFileSync } from 'node:fs';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';

const GUIDE = new URL('../../../docs/operations/acl.md', import.meta.url);

/** `REDIS_TEST_USER=documented`: the tests lock as the ACL user of the documentation, and not as one who may do everything. */
export const LOCKS_AS_USER = process.env.REDIS_TEST_USER === 'documented';

/** The ACL line of docs/operations/acl.md, taken apart. */
export function documentedUser(): { name: string; password: string; rules: string[] } {
  const [, line] = /<!-- acl -->\s+```text\n(.+)\n```/.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  const [keyword, name, ...rules] = (line ?? '').split(' ');
  const password = rules.find((rule) => rule.startsWith('>'))?.slice(1);
  if (keyword !== 'user' || !name || !password) throw new Error('docs/operations/acl.md has no ACL line');
  return { name, password, rules };
}

/** Arguments for a server that knows the user from its start on, and after each restart. */
export function documentedUserArgs(): string[] {
  const { name, rules } = documentedUser();
  return ['--user', name, ...rules];
}

/** The same connection as the documented user. What says itself who it is, and a client, stays as it is. */
export function asDocumentedUser<C extends RedisConnectionOption>(connection: C): C {
  const { name: username, password } = documentedUser();
  if (typeof connection === 'string')
    return connection.replace(/^redis:\/\/(?!.*@)/, `redis://${username}:${password}@`) as C;
  const options: object = connection;
  if ('duplicate' in options || 'password' in options || 'sentinels' in options) return connection;
  return { ...options, username, password } as C;
}

/** Returns a test's connection for locks; see {@link LOCKS_AS_USER}. */
export function lockConnection<C extends RedisConnectionOption>(connection: C): C {
  return LOCKS_AS_USER ? asDocumentedUser(connection) : connection;
}
