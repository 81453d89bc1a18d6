import type { RedisLockService } from 'nestjs-redis-lock';
import { SeededRandom } from '../../../test/support/world/seeded-random.js';
import type { HistoryLog } from '../history/history-log.js';
import { LoopWatch } from '../history/loop-watch.js';
import type { WitnessClient } from '../witness/witness-client.js';
import type { WorkerSettings } from './settings.js';

/** Names that look like a part of a key, or break a line. */
const HOSTILE = ['}:waiters', '}{%7B:done:\n\0 😀', ':tick:{%'];

/** The shared tools of a worker. */
export class Bench {
  readonly random: SeededRandom;
  isOver = false;
  /** Callbacks for each run of the loop. */
  readonly looks = new Set<() => void>();
  #calls = 0;
  readonly #loop: LoopWatch;

  constructor(
    readonly locks: RedisLockService,
    readonly log: HistoryLog,
    readonly witness: WitnessClient | undefined,
    readonly settings: WorkerSettings,
  ) {
    this.random = new SeededRandom(settings.seed);
    this.#loop = new LoopWatch(log, () => {
      for (const look of this.looks) look();
    });
  }

  /** When the event loop last ran, by a timer of its own. */
  get loopRanAt(): number {
    return this.#loop.ranAt;
  }

  /** A name for a call that no other process uses. */
  nextCall(): string {
    return `${this.settings.instanceId}/${++this.#calls}`;
  }

  upTo(limit: number): number {
    return Math.floor(this.random.fraction() * limit);
  }

  /** Returns true with this probability, in percent. */
  chance(percent: number): boolean {
    return this.upTo(100) < percent;
  }

  /** One of the resources of a kind: the first has a plain name, and the others have hostile ones. */
  pick(kind: string): string {
    const number = this.upTo(this.settings.resources);
    return number === 0 ? `${kind}-0` : `${kind}-${number}${HOSTILE[number % HOSTILE.length]!}`;
  }

  /** Nothing of ours keeps the process alive after this. */
  end(): void {
    this.isOver = true;
    this.#loop.end();
    this.witness?.end();
  }
}
