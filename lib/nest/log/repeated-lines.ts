import type { Clock, Timer } from '../../kernel/util/clock.js';
import { countWas } from '../../kernel/util/plurals.js';
import { quoteSome } from '../../kernel/util/quoted.js';

/** The time in which further lines of one kind are only counted. */
const EVERY_MS = 60_000;
/** The maximum of kinds, so that texts from elsewhere cannot fill the memory. The rest count as one kind. */
const MAX_KINDS = 50;
const THE_REST = 'other';
/** The maximum of resources to remember for a kind. */
const MAX_NAMES = 100;

/** A line, or a function that returns it if it is written. */
type Line = string | (() => string);

/** Returns the line for a number of suppressed lines. `names` lists the resources that they were about. */
type Summary = (lines: number, names: string) => string;

/** The counts since the last line of a kind. */
interface Repeated {
  readonly summary: Summary;
  readonly names: Set<string>;
  lines: number;
  timer: Timer;
}

/**
 * Lines that may arrive by the hundred. The first of a kind is written. The following ones within a minute are counted,
 * and summed up in one line at its end; and so on, until a minute passes without any.
 */
export class RepeatedLines {
  readonly #kinds = new Map<string, Repeated>();
  #isClosed = false;

  constructor(
    private readonly clock: Clock,
    private readonly write: (line: string) => void,
  ) {}

  /**
   * @param resource the subject of the line
   * @param text a text from elsewhere that makes a kind of its own, as long as there are not too many
   * @returns whether it was written
   */
  add(name: string, resource: string, line: Line, summary: Summary, text?: string): boolean {
    const kind = text === undefined ? name : `${name}: ${text}`;
    const isOneMore = text !== undefined && this.#kinds.size >= MAX_KINDS && !this.#kinds.has(kind);
    return isOneMore ? this.#add(THE_REST, resource, line, theRest) : this.#add(kind, resource, line, summary);
  }

  #add(kind: string, resource: string, line: Line, summary: Summary): boolean {
    if (this.#isClosed) {
      this.#write(line);
      return true;
    }
    const repeated = this.#kinds.get(kind);
    if (repeated) {
      repeated.lines++;
      if (repeated.names.size < MAX_NAMES) repeated.names.add(resource);
      return false;
    }
    this.#kinds.set(kind, { summary, names: new Set(), lines: 0, timer: this.#minuteOf(kind) });
    this.#write(line);
    return true;
  }

  /** Drops the counts of these kinds, because another line covers them. */
  forget(isTold: (kind: string) => boolean): void {
    for (const [kind, repeated] of this.#kinds) if (isTold(kind)) reset(repeated);
  }

  /** Writes everything that was counted until now. Nothing is counted after this until the next line. */
  flush(): void {
    for (const [kind, repeated] of this.#kinds) {
      repeated.timer.cancel();
      this.#kinds.delete(kind);
      this.#sumUp(repeated);
    }
  }

  /** Flushes, and then writes each line at once. No timer is left. */
  close(): void {
    this.#isClosed = true;
    this.flush();
  }

  #write(line: Line): void {
    this.write(typeof line === 'string' ? line : line());
  }

  #minuteOf(kind: string): Timer {
    return this.clock.setTimer(() => this.#minuteOver(kind), EVERY_MS, { background: true });
  }

  #minuteOver(kind: string): void {
    const repeated = this.#kinds.get(kind)!;
    if (repeated.lines === 0) return void this.#kinds.delete(kind);
    this.#sumUp(repeated);
    reset(repeated);
    repeated.timer = this.#minuteOf(kind);
  }

  #sumUp({ summary, lines, names }: Repeated): void {
    if (lines > 0) this.write(summary(lines, quoteSome([...names])));
  }
}

function reset(repeated: Repeated): void {
  repeated.lines = 0;
  repeated.names.clear();
}

function theRest(lines: number, names: string): string {
  return `In the last minute, ${countWas(lines, 'more line')} left out, about ${names}.`;
}
