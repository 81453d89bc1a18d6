// The clients of a contestant that keeps its locks on one Redis, on several, or on a cluster.
import { Cluster, Redis } from 'ioredis';

/** @returns {(Redis | Cluster)[]} */
export function openServers(url, { quorum = [url], cluster }) {
  return cluster ? [new Cluster(cluster)] : quorum.map((each) => new Redis(each));
}

/** Loads a script on every server that may be asked to run it. */
export async function loadScript(servers, script) {
  const nodes = servers.flatMap((redis) => (redis.isCluster ? redis.nodes('master') : [redis]));
  const [sha] = await Promise.all(nodes.map((redis) => redis.script('LOAD', script)));
  return sha;
}
