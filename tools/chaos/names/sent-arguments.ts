import { Redis } from 'ioredis';

/** What comes of a value that nobody has checked. */
const UNCHECKED = /^(NaN|undefined|null|true|false|-?Infinity|\[object .*\]|function.*|-?\d+\.\d+|\d+e\+?\d+)$/;

/** Looks at all that a server is sent. Ends with the list of what no option may become. */
export async function watchArguments(url: string): Promise<() => Promise<string[]>> {
  const redis = new Redis(url);
  const monitor = await redis.monitor();
  const found: string[] = [];
  monitor.on('monitor', (_time: string, args: string[]) => {
    const [command = '', ...rest] = args;
    if (command.toLowerCase() !== 'evalsha') return;
    for (const arg of rest) if (UNCHECKED.test(arg)) found.push(`${arg} was sent in ${JSON.stringify(args)}`);
  });
  return async () => {
    // In the order of the server: after its answer, everything before it has been seen.
    const seen = new Promise<void>((resolve) => {
      monitor.on('monitor', (_time: string, args: string[]) => args[0] === 'echo' && resolve());
    });
    await redis.echo('over');
    await seen;
    monitor.disconnect();
    redis.disconnect();
    return found;
  };
}
