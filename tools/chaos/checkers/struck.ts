import type { FaultSpan, History } from '../history/history.js';
import { type Span, Spans } from './spans.js';

export interface StruckOptions {
  /** Time for which a fault has effects after it was healed, in milliseconds. */
  readonly afterMs?: number;
  /** Standstills that are shorter do not count, in milliseconds. */
  readonly stallMs?: number;
  /** Answers that took no longer do not count. @default a quarter of the shortest lease */
  readonly lateMs?: number;
  /** Faults that do not count. */
  readonly except?: (fault: FaultSpan) => boolean;
}

/** Which process could not do what is promised, and when: struck by a fault, by one of Redis itself, or standing still. */
export class Struck {
  /** The faults that strike Redis: every process that lived when they began. */
  readonly ofRedis: readonly FaultSpan[];
  /** Spans in which Redis, the network or the machine stalled by itself, as seen by late replies to the observer. */
  readonly slow: readonly Span[];
  readonly #ofSome = new Map<string, FaultSpan[]>();
  readonly #stalls = new Map<string, Span[]>();
  readonly #spans = new Map<string, Spans>();
  readonly #redisSpans: readonly Span[];
  readonly redis: Spans;

  constructor(
    history: History,
    private readonly options: StruckOptions = {},
  ) {
    const { except = () => false } = options;
    const lives = livesOf(history);
    const ofRedis: FaultSpan[] = [];
    for (const fault of history.faults) {
      if (except(fault)) continue;
      if (strikesAll(fault, lives)) ofRedis.push(fault);
      else for (const victim of fault.victims) push(this.#ofSome, victim, fault);
    }
    for (const { process, from, at } of history.of('stall')) {
      if (at - from >= (options.stallMs ?? 0)) push(this.#stalls, process, { from, to: at });
    }
    this.ofRedis = ofRedis;
    const leaseMs = history.calls.reduce((least, { invoked }) => Math.min(least, invoked.leaseMs), Infinity);
    const lateMs = options.lateMs ?? leaseMs / 4;
    const spans = (entries: readonly { from: number; at: number }[]): Span[] =>
      entries.map(({ from, at }) => ({ from, to: at }));
    // A stall right after another one counts for both.
    const harness = new Spans(spans(history.of('stall').filter(({ process }) => process === 'chaos'))).list;
    this.slow = [...spans(history.of('queue', 'late')), ...harness].filter(({ from, to }) => to - from > lateMs);
    this.#redisSpans = [...ofRedis, ...this.slow].map((span) => this.#felt(span));
    this.redis = new Spans(this.#redisSpans);
  }

  /** When the process was struck. */
  spansOf(process: string): Spans {
    let spans = this.#spans.get(process);
    if (!spans) {
      const own = [...this.faultsOf(process), ...this.stallsOf(process)].map((span) => this.#felt(span));
      spans = new Spans([...own, ...this.#redisSpans]);
      this.#spans.set(process, spans);
    }
    return spans;
  }

  /** The faults that strike it and not Redis itself. */
  faultsOf(process: string): readonly FaultSpan[] {
    return this.#ofSome.get(process) ?? [];
  }

  /** The stalls of its event loop that overlap this period. */
  stallsOf(process: string, from = -Infinity, to = Infinity): Span[] {
    const stalls = this.#stalls.get(process) ?? [];
    let [low, high] = [0, stalls.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (stalls[middle]!.to < from) low = middle + 1;
      else high = middle;
    }
    const found: Span[] = [];
    for (; low < stalls.length && stalls[low]!.from <= to; low++) found.push(stalls[low]!);
    return found;
  }

  #felt({ from, to }: Span): Span {
    return { from, to: to + (this.options.afterMs ?? 0) };
  }
}

/** From when to when each process lived that ever asked for a lock. */
function livesOf({ entries, calls }: History): ReadonlyMap<string, Span> {
  const callers = new Set(calls.map(({ invoked }) => invoked.process));
  const lives = new Map<string, { from: number; to: number }>();
  for (const entry of entries) {
    const { at } = entry;
    const process = entry.type === 'died' ? entry.victim! : entry.process;
    if (!callers.has(process)) continue;
    const life = lives.get(process);
    if (!life) lives.set(process, { from: at, to: Infinity });
    else if (entry.type === 'died' || entry.type === 'closed') life.to = Math.min(life.to, at);
  }
  return lives;
}

function strikesAll({ from, victims }: FaultSpan, lives: ReadonlyMap<string, Span>): boolean {
  const struck = new Set(victims);
  for (const [process, life] of lives) {
    if (life.from < from && life.to > from && !struck.has(process)) return false;
  }
  return victims.length > 1;
}

function push<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
