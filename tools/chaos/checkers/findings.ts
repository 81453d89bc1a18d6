import type { FaultSpan, History } from '../history/history.js';
import type { Verdict, Violation } from './violation.js';

/** More than a reader would read. The last finding has the total. */
const MOST = 1_000;

/** The findings of one checker. */
export class Findings {
  looked = 0;
  readonly #violations: Violation[] = [];
  readonly #shown: Violation[] = [];
  readonly #left = { violations: 0, shown: 0 };

  constructor(private readonly rule: string) {}

  violate(at: number, what: () => string): void {
    if (this.#violations.length < MOST) this.#violations.push({ rule: this.rule, at, what: what() });
    else this.#left.violations++;
  }

  /** Explained by a fault under which one Redis cannot keep its word. */
  show(at: number, fault: FaultSpan, what: () => string): void {
    if (this.#shown.length >= MOST) this.#left.shown++;
    else this.#shown.push({ rule: this.rule, at, what: `${what()}: expected under ${nameOf(fault)}` });
  }

  /** Shown where a fault explains it, else a violation. */
  tell(at: number, fault: FaultSpan | undefined, what: () => string): void {
    if (fault) this.show(at, fault, what);
    else this.violate(at, what);
  }

  verdict(): Verdict {
    const violations = withRest(this.rule, this.#violations, this.#left.violations);
    const shown = withRest(this.rule, this.#shown, this.#left.shown);
    return { rule: this.rule, looked: this.looked, violations, ...(shown.length > 0 && { shown }) };
  }
}

function withRest(rule: string, found: Violation[], left: number): readonly Violation[] {
  return left === 0 ? found : [...found, { rule, at: found.at(-1)!.at, what: `and ${left} more` }];
}

export function nameOf({ id, kind }: FaultSpan): string {
  return `fault ${id} (${kind})`;
}

/** The faults that the reader should think of: open in that time, or begun at most a lease before. */
export function under({ faults }: History, from: number, to: number, leaseMs: number): string {
  const open = faults.filter((fault) => fault.from <= to && Math.max(fault.to, fault.from + leaseMs) >= from);
  return open.length === 0 ? 'no fault' : open.map(nameOf).join(', ');
}

/**
 * Returns the fault that explains an effect between `from` and `to` which no healthy Redis would have: it began before
 * the end, and ended no more than three leases before the start.
 */
export function brokenBy({ faults }: History, from: number, to: number, leaseMs: number): FaultSpan | undefined {
  return faults.find((fault) => fault.breaksPromises && fault.from <= to && fault.to + 3 * leaseMs >= from);
}

/** Formats a moment. */
export function ms(at: number): string {
  return `${at.toFixed(3)} ms`;
}

export function quote(resource: string): string {
  return JSON.stringify(resource);
}
