import type { Cluster, Redis } from 'ioredis';
import { describeValue } from '../../core/api/validation.js';
import { quote } from '../../core/util/quoted.js';

/** The options of ioredis that say which server is meant. */
const SAY_WHERE = ['host', 'port', 'path', 'sentinels', 'cluster', 'Connector'];

const THE_URL = 'write the URL itself, in place of the object';
const WHAT_IS_IN_IT = 'write what is in it, in place of the object, such as { host, port }';
const THE_NODES = 'write { cluster: [...] } for the nodes of a Cluster, or { sentinels: [...], name } for Sentinel';

/** What says where Redis is in the options of other libraries, and what to write here. ioredis ignores these keys. */
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
  if (Array.isArray(given['sentinels'])) return whyNoSentinel(given['sentinels']);
  if (isText(given['path'])) return undefined;
  const empty = ['host', 'path'].find((key) => Object.hasOwn(given, key) && !isText(given[key]));
  if (empty === 'host' || (empty && !isText(given['host']))) {
    const unset = given[empty] ? 'no text' : `${describeValue(given[empty])} (is an environment variable not set?)`;
    return `options whose ${empty} is ${unset}`;
  }
  if (keys.includes('port') && !isPort(given['port'])) return 'options whose port is not the number of a port';
  return keys.some((key) => SAY_WHERE.includes(key)) ? undefined : withoutServer(options, keys);
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

function whyNoSentinel(sentinels: readonly unknown[]): string | undefined {
  for (const sentinel of sentinels) {
    const isObject = typeof sentinel === 'object' && sentinel !== null;
    const why = isObject ? whyNoServer(sentinel) : 'no object: write { host, port }';
    if (why) return `sentinels, one of which is ${why}`;
  }
  return undefined;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isPort(port: unknown): boolean {
  const digits = typeof port === 'number' || typeof port === 'string' ? String(port) : '';
  return /^\d{1,5}$/.test(digits) && Number(digits) > 0 && Number(digits) < 65_536;
}

/**
 * Looks for a URL where a name belongs. Names of servers are in errors, in the log and in events, and a URL has a
 * password.
 *
 * @returns what the client is, for a message, without the name; `undefined` if all of its names are names
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
    (isUrl(String(path ?? '').replace(/^[./][^:]*$/, '')) && 'path');
  return wrong
    ? `options whose ${wrong} has :// or @ in it, so that it could have a password: write the URL itself, in place of ` +
        'the options'
    : undefined;
}

function isUrl(name: unknown): boolean {
  return typeof name === 'string' && /:\/\/|@/.test(name);
}
