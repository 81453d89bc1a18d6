/** A name longer than any option name: no option is suggested for it. */
const MAX_NAME = 40;

/** The names of our options in other libraries. */
const OTHER_WORDS: readonly (readonly [ours: string, theirs: readonly string[]])[] = [
  ['leaseMs', ['ttl', 'ttlMs', 'expire', 'expiry', 'expires', 'expiresIn', 'duration', 'leaseTime', 'lockTimeout']],
  ['waitMs', ['timeout', 'timeoutMs', 'wait', 'waitTime', 'waitTimeout', 'acquireTimeout', 'maxWait']],
  ['retry', ['retries', 'retryCount', 'retryDelay', 'retryInterval', 'retryStrategy', 'attempts']],
  ['keyPrefix', ['prefix', 'namespace']],
  ['key', ['keys', 'resource', 'resources', 'lockKey']],
];

/** The options for the address of Redis, and how to write them. */
const OF_CONNECTION: readonly (readonly [shape: string, names: readonly string[]])[] = [
  ["'redis://localhost:6379'", ['url', 'uri', 'redisUrl', 'connectionString']],
  ['client', ['client', 'redis', 'ioredis', 'redisClient']],
  ['{ cluster: [...] }', ['cluster', 'nodes']],
  ["{ sentinels: [...], name: 'mymaster' }", ['sentinels', 'sentinel']],
  ["{ host: 'localhost', port: 6379 }", ['host', 'port', 'db', 'username', 'password', 'path', 'tls', 'redisOptions']],
];

/** The advice for an option that is known by another name, or that has another place. */
export function otherWord(name: string, known: readonly string[]): string | undefined {
  const [ours] = OTHER_WORDS.find(([our, theirs]) => known.includes(our) && theirs.includes(name)) ?? [];
  if (ours === 'key') return `${name} is called key here, and may be several names: key: ['a', 'b'].`;
  if (ours !== undefined) return `${name} is called ${ours} here.`;
  if (!known.includes('connection')) return undefined;
  const [shape] = OF_CONNECTION.find(([, names]) => names.includes(name)) ?? [];
  return shape && `Put it into connection: { connection: ${shape} }.`;
}

/** The known name within two edits, or with the same letters in another case. They have a letter in common. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_NAME) return undefined;
  const scored = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = scored[0];
  if (!best || best.distance >= Math.max(name.length, best.candidate.length)) return undefined;
  return best.distance <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

/** Levenshtein distance (Wagner and Fischer, 1974), one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, substitution));
    }
    row = next;
  }
  return row[b.length]!;
}
