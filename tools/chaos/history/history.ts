import { type Call, type Hold, holdsOf } from './call.js';
import type { Ended, Entry, FaultSeen } from './entries.js';

/** A fault, and how long it lasted. `to` is Infinity where it was never healed. */
export interface FaultSpan extends Pick<
  FaultSeen,
  'id' | 'kind' | 'victims' | 'breaksPromises' | 'losesData' | 'movesClock'
> {
  readonly from: number;
  readonly to: number;
  /** It could not be injected. */
  readonly missed: boolean;
}

/** The entries that may be of this type. */
type EntryOf<T extends Entry['type'], E extends Entry = Entry> = E extends Entry
  ? [Extract<E['type'], T>] extends [never]
    ? never
    : E
  : never;

/** A history, by calls and by resources. */
export class History {
  /** In the order of time. */
  readonly entries: readonly Entry[];
  readonly calls: readonly Call[];
  readonly holds: readonly Hold[];
  readonly faults: readonly FaultSpan[];
  /** When each process that was killed died. */
  readonly deaths: ReadonlyMap<string, number>;
  readonly callsByResource: ReadonlyMap<string, readonly Call[]>;
  readonly holdsByResource: ReadonlyMap<string, readonly Hold[]>;

  readonly #byType: ReadonlyMap<string, readonly Entry[]>;

  /** @param heardUntil for a running world: everything before this is complete */
  constructor(
    entries: readonly Entry[],
    private readonly heardUntil = 0,
  ) {
    this.entries = entries.toSorted((a, b) => a.at - b.at);
    this.#byType = groupBy(this.entries, ({ type }) => [type]);
    this.deaths = new Map(this.of('died').map(({ victim, at }) => [victim!, at]));
    this.calls = this.#toCalls();
    this.holds = this.calls.flatMap(holdsOf).toSorted((a, b) => a.from - b.from);
    this.callsByResource = groupBy(this.calls, ({ invoked }) => invoked.resources);
    this.holdsByResource = groupBy(this.holds, ({ resource }) => [resource]);
    this.faults = this.#toFaults();
  }

  /** The entries of these types, in the order of time. */
  of<T extends Entry['type']>(...types: T[]): readonly EntryOf<T>[] {
    const lists = types.map((type) => (this.#byType.get(type) ?? []) as readonly EntryOf<T>[]);
    return lists.length === 1 ? lists[0]! : lists.flat().sort((a, b) => a.at - b.at);
  }

  get resources(): string[] {
    return [...this.callsByResource.keys()];
  }

  get endsAt(): number {
    return Math.max(this.heardUntil, this.entries.at(-1)?.at ?? 0);
  }

  #toCalls(): Call[] {
    const calls = new Map<string, Call>();
    for (const entry of this.entries) {
      if (entry.type === 'invoke' && entry.op === 'acquire') {
        const diedAt = this.deaths.get(entry.process);
        const outer = entry.inside === undefined ? undefined : calls.get(entry.inside);
        calls.set(entry.call, {
          invoked: entry,
          endings: 0,
          looks: [],
          writes: [],
          ...(outer && { outer }),
          ...(diedAt !== undefined && { diedAt }),
        });
      } else if ('call' in entry) {
        const call = calls.get(entry.call);
        if (!call) throw new Error(`The history says something of a call that never began: ${JSON.stringify(entry)}`);
        tell(call, entry);
      }
    }
    return [...calls.values()];
  }

  #toFaults(): FaultSpan[] {
    const healed = new Map(
      this.of('fault').flatMap((fault) => (fault.phase === 'healed' ? [[fault.id, fault] as const] : [])),
    );
    return this.of('fault')
      .filter(({ phase }) => phase === 'begin')
      .map(({ at, ...fault }) => {
        const end = healed.get(fault.id);
        return { ...fault, from: at, to: end?.at ?? Infinity, missed: end?.missed ?? false };
      });
  }
}

function tell(call: Call, entry: Extract<Entry, { call: string }>): void {
  if (entry.type === 'look') call.looks.push(entry);
  else if (entry.type === 'wrote') call.writes.push(entry);
  else if (entry.type === 'lost') call.lost ??= entry;
  else if (entry.op === 'acquire') tellEnding(call, entry);
  else if (entry.op === 'downgrade') {
    if (entry.type === 'invoke') call.downgradedAt ??= entry.at;
  } else if (entry.op === 'lower') {
    if (entry.type === 'invoke') call.lowered ??= { at: entry.at, left: entry.left! };
  } else {
    if (entry.type === 'invoke') call.endCalledAt ??= entry.at;
    else call.endedAt ??= entry.at;
    tellRelease(call, entry);
  }
}

function tellEnding(call: Call, entry: Extract<Entry, { op: 'acquire' }>): void {
  if (entry.type === 'invoke') return;
  if (call.endings++ > 0) return;
  if (entry.type === 'ok') {
    const tokens = new Map(call.invoked.resources.map((resource, index) => [resource, entry.tokens[index]!]));
    call.granted = { at: entry.at, tokens, until: entry.until };
  } else {
    const { at, type, code, why, hasCause } = entry;
    call.refused = { at, type, code, why, hasCause };
  }
}

function tellRelease(call: Call, { type, at }: Ended): void {
  if (type === 'invoke') call.releaseCalledAt ??= at;
  else if (type === 'ok') call.releasedAt ??= at;
}

function groupBy<T>(items: readonly T[], keysOf: (item: T) => readonly string[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    for (const key of keysOf(item)) {
      const group = groups.get(key);
      if (group) group.push(item);
      else groups.set(key, [item]);
    }
  }
  return groups;
}
