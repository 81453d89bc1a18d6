import type { Cluster, Redis } from 'ioredis';
import { describeValue } from '../../kernel/api/validation.js';
import { quote } from '../../kernel/util/quoted.js';

export const SAY_WHERE = ['host', 'port', 'path', 'sentinels', 'cluster', 'Connector'];

const THE_URL = 'write the URL itself, in place of the object';
const WHAT_IS_IN_IT = 'write what is in it, in place of the object, such as { host, port }';
const THE_NODES = 'write { cluster: [...] } for the nodes of a Cluster, or { sentinels: [...], name } for Sentinel';

/** The options of other libraries for the address of Redis, and their names here. ioredis ignores these keys. */
const OTHER_KEYS: ReadonlyMap<string, string> = new Map([
  ...each(THE_URL, 'url', 'uri', 'href', 'connectionString', 'redisUrl', 'dsn'),
  ...each(WHAT_IS_IN_IT, 'socket', 'redis', 'connection', 'connectionOptions', 'options', 'config', 'client'),
  ...each(WHAT_IS_IN_IT, 'clientOptions', 'clientOpts', 'clientConfig', 'redisConfig'),
  ...each(THE_NODES, 'nodes', 'rootNodes', 'startupNodes', 'clusterNodes', 'clusters', 'hosts', 'servers'),
  ...each('write { sentinels: [...], name }', 'sentinel', 'sentinelRootNodes'),
  ...each('write host', 'hostname', 'address', 'server', 'endpoint'),
  ...each('write db', 'database'),
]);

function each(advice: string, ...keys: string[]): [string, string][] {
  return keys.map((key) => [key, advice]);
}

/**
 * Looks for options from which ioredis would not learn which server is meant. It would connect to localhost without a
 * word, and each machine may have a Redis of its own there.
 *
 * @returns what the options are, for a message, without a value of theirs; `undefined` if they state a server
 */
export function whyNoServer(options: object): string | undefined {
  if (options instanceof URL) return 'a URL object: write its href';
  const given = options as Record<string, unknown>;
  const keys = Object.keys(given).filter((key) => given[key] !== undefined);
  const other = keys.find((key) => OTHER_KEYS.has(key));
  if (other !== undefined) {
    return `an object with ${quote(other)}, as another library takes it: ${OTHER_KEYS.get(other)}`;
  }
  if (given['Connector'] || given['cluster']) return undefined;
  if (given['sentinels']) return whyNoSentinel(given['sentinels'], given['name']);
  if (isText(given['path'])) return undefined;
  const empty = ['host', 'path'].find((key) => Object.hasOwn(given, key) && !isText(given[key]));
  if (empty === 'host' || (empty && !isText(given['host']))) {
    const unset = given[empty] ? 'no text' : `${describeValue(given[empty])} (is an environment variable not set?)`;
    return `options whose ${empty} is ${unset}`;
  }
  if (keys.includes('port') && !isPort(given['port'])) return 'options whose port is not the number of a port';
  return keys.some((key) => SAY_WHERE.includes(key)) ? undefined : withoutServer(options, keys);
}

/**
 * Finds values that ioredis silently misreads: `db: NaN` for database 0, `db: '1.5'` for 1, and `tls: 'false'` for TLS.
 *
 * @returns the problem, for a message; `undefined` if the options are fine
 */
export function whyMisread({
  db,
  ...others
}: Partial<Record<'db' | 'tls' | 'sentinelTLS', unknown>>): string | undefined {
  if (db !== undefined && !/^\d+$/.test(typeof db === 'number' || typeof db === 'string' ? String(db) : '')) {
    const isUnset = db === null || db === '' || Number.isNaN(db);
    const unset = isUnset ? ` ${describeValue(db)} (is an environment variable not set?)` : '';
    return `options whose db is${unset || ' not the number of a database'}: write one such as db: 2, or leave it out for 0`;
  }
  const wrong = (['tls', 'sentinelTLS'] as const).find((name) => others[name] && typeof others[name] !== 'object');
  if (wrong === undefined) return undefined;
  return `options whose ${wrong} is not an object: for TLS, write ${wrong}: {}, or a URL with rediss://. Without TLS, leave it out`;
}

function withoutServer(options: object, keys: readonly string[]): string {
  const instead =
    keys.length === 0
      ? ''
      : `, but with ${keys
          .slice(0, 5)
          .map((key) => quote(key))
          .join(', ')}`;
  const names = `${SAY_WHERE.slice(0, 4).join(', ')} or cluster`;
  return `${describeValue(options)} without ${names}${instead}: for a Redis on this machine, write { host: 'localhost' }`;
}

function whyNoSentinel(sentinels: unknown, name: unknown): string | undefined {
  const write = "write sentinels: [{ host, port }, ...] and name: 'mymaster', by which they know the primary";
  if (!Array.isArray(sentinels)) return `options whose sentinels are not a list: ${write}`;
  if (sentinels.length === 0) return `options whose sentinels are an empty list: ${write}`;
  for (const sentinel of sentinels) {
    const isObject = typeof sentinel === 'object' && sentinel !== null;
    const why = isObject ? whyNoServer(sentinel) : 'not an object: write { host, port }';
    if (why) return `sentinels, one of which is ${why}`;
  }
  return isText(name) ? undefined : `options with sentinels and without name: ${write}`;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isPort(port: unknown): boolean {
  const digits = typeof port === 'number' || typeof port === 'string' ? String(port) : '';
  return /^\d{1,5}$/.test(digits) && Number(digits) > 0 && Number(digits) < 65_536;
}

/**
 * Finds a URL in place of a name. Names of servers are in errors, in the log and in events, and a URL has a password.
 *
 * @returns the problem, for a message, without the name; `undefined` if all of its names are names
 */
export function whyNoName(client: Redis | Cluster): string | undefined {
  const { host, path, name, sentinels, natMap } = client.options as Partial<Redis['options']>;
  const { startupNodes = [] } = client as unknown as { startupNodes?: readonly unknown[] };
  const mapped = typeof natMap === 'object' && natMap !== null ? Object.values(natMap) : [];
  const others = [...(sentinels ?? []), ...startupNodes, ...mapped].map((other) => Object(other).host as unknown);
  const wrong =
    ([host, ...others].some(isUrl) && 'host') ||
    // A primary may have an @ in its name.
    (isUrl(String(name ?? '').replace(/^[^:]*$/, '')) && 'name') ||
    // A folder may have an @ in its name.
    (isUrl(String(path ?? '').replace(/^\/[^:]*$/, '')) && 'path');
  if (wrong) {
    return `options whose ${wrong} has :// or @ in it, so that it could have a password: write the URL itself, in place of the options`;
  }
  if ([host, ...others].every(isHost) && ![name, path].some(hasPassword)) return undefined;
  const what = [name, path].some(hasPassword)
    ? 'a password in their name or path'
    : 'a host that is neither a name nor an address';
  return `options with ${what}: write host, port, username, password and tls as options of their own`;
}

function isUrl(name: unknown): boolean {
  return typeof name === 'string' && /:\/\/|@/.test(name);
}

/** Not the connection text of a cloud, "host:port,password=...", and not an encoded URL. */
function isHost(host: unknown): boolean {
  return typeof host !== 'string' || /^[\p{L}\p{N}._-]*$/u.test(host) || /^\[?[\da-f:.]+(%[\w.-]+)?\]?$/i.test(host);
}

function hasPassword(name: unknown): boolean {
  return typeof name === 'string' && /\b(password|passwd|pwd|secret|auth)=/i.test(name);
}
