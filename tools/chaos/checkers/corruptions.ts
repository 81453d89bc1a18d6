import type { AcquireInvoked, AcquireOk, Entry } from '../history/entries.js';
import { History } from '../history/history.js';
import type { Dice } from './random-history.js';

/** Makes a history that is right one that is wrong. Gives nothing where there is nothing to do it to. */
export type Corruption = (entries: readonly Entry[], roll: Dice) => Entry[] | undefined;

type Of<T extends Entry['type']> = Extract<Entry, { type: T }>;

function pick<T>(items: readonly T[], roll: Dice): T | undefined {
  return items[roll(items.length)];
}

function replace(entries: readonly Entry[], old: Entry, ...by: Entry[]): Entry[] {
  return entries.flatMap((entry) => (entry === old ? by : [entry]));
}

const isOk = (entry: Entry): entry is AcquireOk => entry.type === 'ok' && entry.op === 'acquire';

const grantOf = (entries: readonly Entry[], call: string): AcquireOk =>
  entries.filter(isOk).find((entry) => entry.call === call)!;

/** Returns two leases of `stock`, which is never shared, one after the other. */
function neighbours(entries: readonly Entry[], roll: Dice): [AcquireOk, AcquireOk] | undefined {
  const holds = new History(entries).holdsByResource.get('stock')!;
  if (holds.length < 2) return undefined;
  const place = roll(holds.length - 1);
  const [one, other] = [holds[place]!, holds[place + 1]!];
  return [grantOf(entries, one.call.invoked.call), grantOf(entries, other.call.invoked.call)];
}

/** A call that starts after all others have ended. */
const LATE_CALL = { process: 'p1', call: 'late', op: 'acquire' } as const;
const LATE_ASKS = { type: 'invoke', resources: ['stock'], mode: 'exclusive', leaseMs: 300, queues: true } as const;

export const corruptions: Readonly<Record<string, Corruption>> = {
  'two tokens are swapped'(entries, roll) {
    const [one, other] = neighbours(entries, roll) ?? [];
    if (!one || !other) return undefined;
    const swapped = replace(entries, one, { ...one, tokens: other.tokens });
    return replace(swapped, other, { ...other, tokens: one.tokens });
  },
  'a token is given twice'(entries, roll) {
    const [one, other] = neighbours(entries, roll) ?? [];
    return one && other && replace(entries, other, { ...other, tokens: one.tokens });
  },
  'a grant comes before the end of the one before'(entries, roll) {
    const [one, other] = neighbours(entries, roll) ?? [];
    if (!one || !other) return undefined;
    const { invoked } = new History(entries).calls.find(({ invoked: { call } }) => call === other.call)!;
    const asked = replace(entries, invoked, { ...invoked, at: Math.min(invoked.at, one.at) });
    return replace(asked, other, { ...other, at: one.at + 0.01 });
  },
  'a call never ends'(entries, roll) {
    const ok = pick(entries.filter(isOk), roll);
    if (!ok) return undefined;
    const isBegin = (entry: Entry): boolean => entry.type === 'invoke' && entry.op === 'acquire';
    return entries.filter((entry) => !('call' in entry) || entry.call !== ok.call || isBegin(entry));
  },
  'a call ends twice'(entries, roll) {
    const ok = pick(entries.filter(isOk), roll);
    return ok && replace(entries, ok, ok, { ...ok, at: ok.at + 0.01 });
  },
  'a release never ends'(entries, roll) {
    const isEnd = (entry: Entry): boolean => entry.type === 'ok' && entry.op === 'release';
    const end = pick(entries.filter(isEnd), roll);
    return end && replace(entries, end);
  },
  'one permit too many'(entries, roll) {
    const isSemaphore = (entry: Entry): entry is AcquireInvoked => entry.type === 'invoke' && 'permits' in entry;
    const invoke = pick(entries.filter(isSemaphore), roll);
    return invoke && replace(entries, invoke, { ...invoke, permits: 4 });
  },
  'a writer beside readers'(entries) {
    const reads = new History(entries).holdsByResource.get('prices')!.filter(({ shares }) => shares === 'read');
    const place = reads.findIndex(({ to, call }, index) => {
      const next = reads[index + 1];
      return next && next.from < to && call.invoked.mode === 'read';
    });
    if (place === -1) return undefined;
    const { invoked } = reads[place]!.call;
    return replace(entries, invoked, { ...invoked, mode: 'write' });
  },
  'a pair in the queue is reversed'(entries) {
    // The first waiter is the next holder of an exclusive lock, unless it ends before it is seen.
    const seen = entries.find((entry): entry is Of<'queue'> => {
      return entry.type === 'queue' && entry.resource === 'stock' && entry.waiters.length > 1;
    });
    return seen && replace(entries, seen, { ...seen, waiters: seen.waiters.toReversed() });
  },
  'the witness accepts a stale write'(entries, roll) {
    const write = pick(
      entries.filter((entry): entry is Of<'witnessed'> => entry.type === 'witnessed'),
      roll,
    );
    return write && replace(entries, write, write, { ...write, token: write.token - 1, at: write.at + 0.001 });
  },
  'a write under the lock is refused'(entries, roll) {
    const write = pick(
      entries.filter((entry): entry is Of<'wrote'> => entry.type === 'wrote'),
      roll,
    );
    return write && replace(entries, write, { ...write, accepted: false });
  },
  'a lease revives'(entries, roll) {
    const look = pick(
      entries.filter((entry): entry is Of<'look'> => entry.type === 'look'),
      roll,
    );
    return look && replace(entries, look, { ...look, at: look.at - 0.001, held: false, aborted: true }, look);
  },
  'a lease is held after its deadline'(entries, roll) {
    const look = pick(
      entries.filter((entry): entry is Of<'look'> => entry.type === 'look'),
      roll,
    );
    return look && replace(entries, look, { ...look, until: look.at - 1 });
  },
  'a re-entry gets a token of its own'(entries, roll) {
    const inside = (entry: Entry): entry is AcquireInvoked => 'inside' in entry && entry.inside !== undefined;
    const invoke = pick(entries.filter(inside), roll);
    if (!invoke) return undefined;
    const ok = grantOf(entries, invoke.call);
    return replace(entries, ok, { ...ok, tokens: [ok.tokens[0]! + 1] });
  },
  'a free resource is not granted'(entries) {
    // All calls have ended, and one still waits.
    const closing = entries.find(({ type }) => type === 'closing')!;
    const later = entries.map((entry) => (entry.at >= closing.at ? { ...entry, at: entry.at + 10_000 } : entry));
    const [from, to] = [closing.at + 1, closing.at + 9_000];
    return [
      ...later,
      { ...LATE_CALL, ...LATE_ASKS, at: from },
      { ...LATE_CALL, type: 'fail', at: to, code: 'LOCK_SHUTDOWN' },
    ];
  },
  'a call is refused for no reason'(entries) {
    const closing = entries.find(({ type }) => type === 'closing')!;
    return [
      ...entries,
      { ...LATE_CALL, ...LATE_ASKS, at: closing.at - 1 },
      { ...LATE_CALL, type: 'fail', at: closing.at, code: 'LOCK_UNAVAILABLE' },
    ];
  },
  'an outage is told as a busy resource'(entries) {
    const closing = entries.find(({ type }) => type === 'closing')!;
    const [from, to] = [closing.at + 1, closing.at + 5_000];
    return [
      ...entries,
      { type: 'unanswered', process: 'chaos', from, at: to, victims: [LATE_CALL.process] },
      { ...LATE_CALL, ...LATE_ASKS, waitMs: to - from - 1, at: from },
      { ...LATE_CALL, type: 'fail', at: to - 1, code: 'LOCK_TIMEOUT' },
    ];
  },
  'a busy resource is told as an outage'(entries) {
    const closing = entries.find(({ type }) => type === 'closing')!;
    return [
      ...entries,
      { ...LATE_CALL, ...LATE_ASKS, waitMs: 1_000, at: closing.at + 1 },
      { ...LATE_CALL, type: 'fail', at: closing.at + 1_001, code: 'LOCK_UNAVAILABLE' },
    ];
  },
  'a key is left'(entries) {
    return entries.map((entry) => (entry.type === 'leftovers' ? { ...entry, keys: ['lock:{stock}'] } : entry));
  },
  'a process never closes'(entries, roll) {
    const closed = pick(
      entries.filter(({ type }) => type === 'closed'),
      roll,
    );
    return closed && replace(entries, closed);
  },
};
