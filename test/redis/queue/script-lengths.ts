import type { Redis } from 'ioredis';
import { CommandMonitor } from '../../support/redis/command-monitor.js';

/** Lengths of scripts, in commands that they called: independent of the load of the machine. */
export class ScriptLengths {
  /** The number for each script, in the order of their runs. */
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
