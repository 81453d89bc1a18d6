import type { Redis } from 'ioredis';
import { CommandMonitor } from '../../support/redis/command-monitor.js';

/** How long scripts were, in the commands that they called: that does not depend on how busy the machine is. */
export class ScriptLengths {
  /** Of each script, in the order they ran. */
  readonly commands: number[] = [];
  /** The most arguments that any of the commands had. */
  mostArguments = 0;

  /** Watches all scripts that run in the meantime, of whichever client. */
  static async during(redis: Redis, work: () => Promise<unknown>): Promise<ScriptLengths> {
    const lengths = new ScriptLengths();
    await using monitor = await CommandMonitor.start(redis, (args, source) => {
      if (source === 'lua') {
        lengths.commands[lengths.commands.length - 1]!++;
        lengths.mostArguments = Math.max(lengths.mostArguments, args.length);
      } else if (/^eval(sha)?$/i.test(args[0]!)) lengths.commands.push(0);
    });
    await work();
    await monitor.seenAll();
    return lengths;
  }

  get longest(): number {
    return Math.max(0, ...this.commands);
  }
}
