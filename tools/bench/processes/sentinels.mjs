// A primary, its replica, and three sentinels as the documentation of Redis has them, with a shorter down-after.
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedisServer } from '../../../scripts/redis-server.mjs';

const NAME = 'bench';
const NOTHING_ON_DISK = ['--save', '', '--appendonly', 'no'];

export async function startSentinels({ downAfterMs = 5_000 } = {}) {
  const primary = await startRedisServer({ args: NOTHING_ON_DISK });
  const follow = ['--replicaof', `127.0.0.1 ${primary.port}`];
  const replica = await startRedisServer({ args: [...NOTHING_ON_DISK, ...follow] });
  const config =
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 2\n` +
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}\n`;
  const sentinels = await Promise.all([1, 2, 3].map(() => startRedisServer({ config, args: ['--sentinel'] })));
  await untilTheyKnowEachOther(sentinels);
  let killed;
  return {
    connection: { sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })), name: NAME },
    /** Once, however many ask. */
    killPrimary: () => (killed ??= primary.kill()),
    stop: () => Promise.all([...sentinels, primary, replica].map((server) => server.stop())),
  };
}

/** Each sees the other two, and the replica. */
async function untilTheyKnowEachOther(sentinels) {
  for (const { port } of sentinels) {
    const client = new Redis(port, '127.0.0.1', { enableReadyCheck: false });
    const knows = async () => {
      const facts = await client.call('SENTINEL', 'MASTER', NAME);
      const fact = (name) => Number(facts[facts.indexOf(name) + 1]);
      return fact('num-other-sentinels') === 2 && fact('num-slaves') === 1;
    };
    try {
      while (!(await knows())) await sleep(100);
    } finally {
      client.disconnect();
    }
  }
}
