import type { Redis } from 'ioredis';

/** What takes no longer is not noted, by Redis. */
export const SHORT_SCRIPT_US = 1_000;
/** More than come between two looks. */
const KEPT = 1_024;

/** What SLOWLOG says of a command: its number, when, for how long, the arguments, whose. */
type Noted = readonly [number, number, number, readonly string[], string, string];

/** Asks a Redis for the longest script of the library. */
export class LongestScript {
  constructor(private readonly admin: Redis) {}

  /** Of those that were executed since it was last asked. Nothing where Redis does not answer, or all were shorter than what it notes. */
  async take(): Promise<{ ms: number; key: string } | undefined> {
    const replies = await this.admin
      .multi([
        ['slowlog', 'get', String(KEPT)],
        ['slowlog', 'reset'],
        // Each time: a server that was started anew has forgotten it.
        ['config', 'set', 'slowlog-log-slower-than', String(SHORT_SCRIPT_US), 'slowlog-max-len', String(KEPT)],
      ])
      .exec()
      .catch(() => null);
    let longest: Noted | undefined;
    for (const noted of (replies?.[0]?.[1] ?? []) as readonly Noted[]) {
      const [, , us, [command], , client] = noted;
      if (!/^EVAL/i.test(command!) || !client.startsWith('nestjs-redis-lock')) continue;
      if (us > (longest?.[2] ?? 0)) longest = noted;
    }
    // The first of its keys says what it was about.
    return longest && { ms: longest[2] / 1_000, key: longest[3][3] ?? '' };
  }
}
