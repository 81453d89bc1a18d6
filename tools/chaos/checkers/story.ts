import type { ChaosMode, Entry } from '../history/entries.js';
import { History } from '../history/history.js';

interface Asked {
  /** The name of the call. @default the process and a number */
  readonly as?: string;
  readonly mode?: ChaosMode;
  readonly permits?: number;
  readonly total?: number;
  readonly leaseMs?: number;
  readonly waitMs?: number;
  readonly queues?: boolean;
  readonly inside?: string;
  readonly abortMs?: number;
  /** When it was called. @default a millisecond before */
  readonly asked?: number;
}

export interface Held extends Asked {
  readonly from: number;
  /** When its end was called. With some values of `ends`, its process was killed then or never got there. */
  readonly to: number;
  readonly token: number | readonly number[];
  /** @default the end, and ten milliseconds */
  readonly until?: number;
  /** @default 'release' */
  readonly ends?: 'release' | 'never';
  readonly downgradedAt?: number;
}

/** Builds a history in a few lines, as the processes would have written it. Times are milliseconds. */
export class Story {
  readonly entries: Entry[] = [];
  #calls = 0;

  add(...entries: Entry[]): this {
    this.entries.push(...entries);
    return this;
  }

  /** A lease, from the call to its end. */
  hold(process: string, resource: string | readonly string[], held: Held): this {
    const { from, to, token, until = to + 10, ends = 'release', downgradedAt } = held;
    const call = this.#ask(process, resource, held, from);
    const tokens = typeof token === 'number' ? [token] : token;
    this.add({ type: 'ok', op: 'acquire', at: from, process, call, tokens, until });
    if (downgradedAt !== undefined) {
      this.add({ type: 'invoke', op: 'downgrade', at: downgradedAt, process, call });
      this.add({ type: 'ok', op: 'downgrade', at: downgradedAt + 0.1, process, call });
    }
    if (ends === 'never') return this;
    this.add({ type: 'invoke', op: ends, at: to, process, call });
    return this.add({ type: 'ok', op: ends, at: to + 0.1, process, call });
  }

  /** A call that was not granted. */
  refused(
    process: string,
    resource: string | readonly string[],
    refused: Asked & {
      readonly at: number;
      readonly code: string | null;
      readonly type?: 'fail' | 'unknown';
      readonly why?: string;
      readonly hasCause?: boolean;
    },
  ): this {
    const call = this.#ask(process, resource, refused, refused.at);
    const { type = 'fail', at, code, why, hasCause } = refused;
    const said = { ...(why !== undefined && { why }), ...(hasCause !== undefined && { hasCause }) };
    return this.add({ type, op: 'acquire', at, process, call, code, ...said });
  }

  /** A call that never returned. */
  waits(process: string, resource: string | readonly string[], asked: Asked & { readonly asked: number }): this {
    this.#ask(process, resource, asked, asked.asked);
    return this;
  }

  look(process: string, call: string, look: { at: number; held: boolean; until?: number; aborted?: boolean }): this {
    const { at, held, until = held ? at + 100 : at, aborted = !held } = look;
    return this.add({ type: 'look', process, call, at, held, until, aborted });
  }

  lost(process: string, call: string, lost: { at: number; until: number; reason?: string; loopRanAt?: number }): this {
    const { at, until, reason = 'notRenewed', loopRanAt = at } = lost;
    return this.add({ type: 'lost', process, call, at, until, reason, loopRanAt });
  }

  wrote(
    process: string,
    call: string,
    wrote: { at: number; token: number; accepted?: boolean; heldAfter?: boolean; resource?: string },
  ): this {
    const { resource = 'stock', accepted = true, heldAfter = true } = wrote;
    return this.add({ type: 'wrote', process, call, resource, accepted, heldAfter, at: wrote.at, token: wrote.token });
  }

  witnessed(at: number, token: number, accepted = true, resource = 'stock'): this {
    return this.add({ type: 'witnessed', process: 'witness', at, resource, token, accepted, read: 0, found: 0 });
  }

  queue(at: number, holders: Record<string, number>, waiters: readonly string[], resource = 'stock'): this {
    const list = Object.entries(holders).map(([instanceId, token]) => ({ instanceId, token }));
    return this.add({ type: 'queue', process: 'chaos', from: at - 0.5, at, resource, holders: list, waiters });
  }

  fault(
    kind: string,
    fault: {
      from: number;
      to: number;
      victims: readonly string[];
      breaksPromises?: boolean;
      losesData?: boolean;
      movesClock?: boolean;
      missed?: boolean;
    },
  ): this {
    const { from, to, breaksPromises = false, ...rest } = fault;
    const said = { ...rest, type: 'fault', process: 'chaos', id: ++this.#calls, kind, breaksPromises } as const;
    this.add({ ...said, phase: 'begin', at: from });
    return to === Infinity ? this : this.add({ ...said, phase: 'healed', at: to });
  }

  unanswered(from: number, at: number, victims: readonly string[]): this {
    return this.add({ type: 'unanswered', process: 'chaos', from, at, victims });
  }

  stall(process: string, from: number, at: number): this {
    return this.add({ type: 'stall', process, from, at });
  }

  late(from: number, at: number): this {
    return this.add({ type: 'late', process: 'chaos', from, at });
  }

  died(victim: string, at: number): this {
    return this.add({ type: 'died', process: 'chaos', victim, at });
  }

  closes(process: string, closing: number, closed?: number): this {
    this.add({ type: 'closing', process, at: closing });
    return closed === undefined ? this : this.add({ type: 'closed', process, at: closed });
  }

  get history(): History {
    return new History(this.entries);
  }

  #ask(process: string, resource: string | readonly string[], asked: Asked, before: number): string {
    const { as: call = `${process}#${++this.#calls}`, asked: at = before - 1, leaseMs = 300, queues = true } = asked;
    const { mode = 'exclusive', permits, total, waitMs, inside, abortMs } = asked;
    this.add({
      type: 'invoke',
      op: 'acquire',
      at,
      process,
      call,
      resources: typeof resource === 'string' ? [resource] : resource,
      mode,
      leaseMs,
      queues,
      ...(permits !== undefined && { permits }),
      ...(total !== undefined && { total }),
      ...(waitMs !== undefined && { waitMs }),
      ...(inside !== undefined && { inside }),
      ...(abortMs !== undefined && { abortMs }),
    });
    return call;
  }
}

export function story(): Story {
  return new Story();
}
