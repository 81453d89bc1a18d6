import type { Redis } from 'ioredis';
import * as scripts from '../../../lib/redis/script/scripts.js';
import type { Script } from '../../../lib/redis/script/script.js';
import { preferServer, processorWaits, waitedBetween } from './processor-waits.js';

/** What takes no longer is not noted, by Redis. */
export const SHORT_SCRIPT_US = 1_000;
/** More than come between two looks. */
const KEPT = 1_024;
/** SLOWLOG cuts longer arguments. It says how many bytes are left out. */
const CUT = /^([^]*)\.\.\. \((\d+) more bytes\)$/;

const KNOWN: readonly Script[] = Object.values(scripts).filter((value) => 'lua' in value);

/** What SLOWLOG says of a command: its number, when, for how long, the arguments, whose. */
type Noted = readonly [number, number, number, readonly string[], string, string];

/** A script of the library, as Redis measured it. */
export interface SlowScript {
  /** From its beginning to its end. */
  readonly ms: number;
  /** Redis worked on it for at least so long: without the time in which it may have waited for a processor. */
  readonly atWorkMs: number;
  /** Its name. */
  readonly script: string;
  /** The first of its keys says what it was about. */
  readonly key: string;
}

/** Which script took longest by the clock, and on which one Redis certainly worked longest. */
export interface LongestScripts {
  readonly byClock?: SlowScript;
  readonly atWork?: SlowScript;
}

/**
 * Asks a Redis for the longest script of the library. SLOWLOG goes by the clock: what takes the processor away from Redis in the
 * middle of a script makes it longer, which is why Redis runs before all else from the first look on. What stops Redis altogether
 * (SIGSTOP) is not known here.
 */
export class LongestScript {
  /** As they were before the last look. */
  #waits = processorWaits(0);

  constructor(private readonly admin: Redis) {}

  /** Of those that were executed since it was last asked. Nothing where Redis does not answer, or all were shorter than what it notes. */
  async take(): Promise<SlowScript | undefined> {
    const before = processorWaits(this.#waits.pid);
    const replies = await this.admin
      .multi([
        ['slowlog', 'get', String(KEPT)],
        ['slowlog', 'reset'],
        // Each time: a server that was started anew has forgotten it.
        ['config', 'set', 'slowlog-log-slower-than', String(SHORT_SCRIPT_US), 'slowlog-max-len', String(KEPT)],
        ['info', 'server'],
      ])
      .exec()
      .catch(() => null);
    if (!replies) return undefined;
    const pid = Number(/^process_id:(\d+)/m.exec(String(replies[3]?.[1]))?.[1] ?? 0);
    if (pid !== before.pid) preferServer(pid);
    const waitedMs = waitedBetween(this.#waits, processorWaits(pid));
    this.#waits = before.pid === pid ? before : { ...before, pid, queuedMs: 0 };
    let longest: Noted | undefined;
    for (const noted of (replies[0]?.[1] ?? []) as readonly Noted[]) {
      const [, , us, [command], , client] = noted;
      if (!/^EVAL/i.test(command!) || !client.startsWith('nestjs-redis-lock')) continue;
      if (us > (longest?.[2] ?? 0)) longest = noted;
    }
    if (!longest) return undefined;
    const [, , us, [, text = '', , key = '']] = longest;
    const ms = us / 1_000;
    return { ms, atWorkMs: Math.max(0, ms - waitedMs), script: nameOf(text), key };
  }
}

/** Of many scripts, or of those of several chapters. */
export function longestOf(scripts: readonly SlowScript[]): LongestScripts {
  if (scripts.length === 0) return {};
  const longest = (of: 'ms' | 'atWorkMs'): SlowScript => {
    const { ms, atWorkMs, script, key } = scripts.reduce((most, next) => (next[of] > most[of] ? next : most));
    return { ms, atWorkMs, script, key };
  };
  return { byClock: longest('ms'), atWork: longest('atWorkMs') };
}

/** Of the script that EVALSHA names, or whose text EVAL brings. */
function nameOf(text: string): string {
  const cut = CUT.exec(text);
  const found = KNOWN.find(({ lua, sha }) => {
    if (!cut) return sha === text || lua === text;
    return lua.startsWith(cut[1]!) && Buffer.byteLength(lua) === Buffer.byteLength(cut[1]!) + Number(cut[2]);
  });
  return found?.name ?? 'a script that is not in lua/';
}
