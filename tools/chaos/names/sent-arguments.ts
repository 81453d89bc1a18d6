import { Redis } from 'ioredis';
import { CommandMonitor } from '../../../test/support/redis/command-monitor.js';

/** What comes of a value that nobody has checked. */
const UNCHECKED = /^(NaN|undefined|null|true|false|-?Infinity|\[object .*\]|function.*|-?\d+\.\d+|\d+e\+?\d+)$/;

/** Looks at all that a server is sent. Ends with the list of what no option may become. */
export async function watchArguments(url: string): Promise<() => Promise<string[]>> {
  const redis = new Redis(url);
  const found: string[] = [];
  const monitor = await CommandMonitor.start(redis, ([command = '', ...rest]) => {
    if (command.toLowerCase() !== 'evalsha') return;
    for (const arg of rest)
      if (UNCHECKED.test(arg)) found.push(`${arg} was sent in ${JSON.stringify([command, ...rest])}`);
  });
  return async () => {
    await monitor.seenAll();
    await monitor[Symbol.asyncDispose]();
    redis.disconnect();
    return found;
  };
}
