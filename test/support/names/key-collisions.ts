import fc from 'fast-check';
import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { checkResource } from '../../../lib/kernel/api/resource.js';
import { decodeResource, encodeResource, Keys } from '../../../lib/redis/keys.js';
import { hashTag } from './hash-tag.js';
import { canBeName, HOSTILE_NAMES, hostileName, keyPrefix, outerKeyPrefix, relatedNames } from './hostile-names.js';

/** The results of a run over names alone. */
export interface KeyFuzz {
  /** The number of names tried, and of those refused. */
  names: number;
  refused: number;
  /** The number of different keys. */
  keys: number;
  /** The failures, with the seed and path that reproduce them. */
  violations: string[];
}

/** The owner of each key. */
class KeyLedger {
  readonly #owners = new Map<string, string>();

  get size(): number {
    return this.#owners.size;
  }

  /** @throws Error when something else has this key */
  enter(key: string, ...owner: string[]): void {
    const text = JSON.stringify(owner);
    const found = this.#owners.get(key);
    if (found === undefined) this.#owners.set(key, text);
    else if (found !== text) throw new Error(`${JSON.stringify(key)} belongs to ${found} and to ${text}`);
  }
}

/**
 * Nothing but arithmetic on names: every key of every name has one id, and what cannot be a name is refused.
 *
 * @param keysOf other names for the keys, to see whether this finds what is wrong with them
 */
export function fuzzKeys(names: number, seed: number, keysOf = (prefix: string) => new Keys(prefix)): KeyFuzz {
  const result: KeyFuzz = { names: 0, refused: 0, keys: 0, violations: [] };
  const everywhere = new KeyLedger();
  const world = fc.record({ outer: outerKeyPrefix, prefix: keyPrefix, related: relatedNames, tick: hostileName });
  const property = fc.property(world, ({ outer, prefix, related, tick }) => {
    const keys = keysOf(outer + prefix);
    // A foreign prefix with braces may look like our keys; a single prefix cannot.
    const ledger = /[{}]/.test(outer) ? new KeyLedger() : everywhere;
    ledger.enter(keys.fence(keys.lock('any')), keys.prefix, 'fence');
    for (const name of related) {
      result.names++;
      if (isRefused(name)) result.refused++;
      else enterAll(ledger, keys, name, canBeName(tick) ? tick : 'tick');
    }
  });
  const known = { outer: '', prefix: 'lock', related: [...HOSTILE_NAMES], tick: 'tick' };
  // Ten or so names a run.
  const numRuns = Math.ceil(names / 10);
  while (result.names < names && result.violations.length === 0) {
    const report = fc.check(property, { seed: seed + result.names, numRuns, examples: [[known]] });
    if (report.failed) result.violations.push(`${String(report.errorInstance)}\n${fc.defaultReportMessage(report)}`);
  }
  return { ...result, keys: everywhere.size };
}

/** @throws Error when it is refused or accepted and should not be, or refused in another way than it should */
function isRefused(name: string): boolean {
  try {
    checkResource(name, 'acquire');
  } catch (error) {
    if (error instanceof InvalidLockOptionsError && !canBeName(name)) return true;
    throw error;
  }
  if (!canBeName(name)) throw new Error(`${JSON.stringify(name)} was accepted`);
  return false;
}

function enterAll(ledger: KeyLedger, keys: Keys, name: string, tick: string): void {
  const encoded = encodeResource(name);
  if (decodeResource(encoded) !== name) throw new Error(`${JSON.stringify(name)} is not decoded as it was`);
  const [lock, waiters] = [keys.lock(name), keys.waiters(name)];
  const others = [keys.done(name, tick), keys.tick(name, tick)];
  ledger.enter(lock, keys.prefix, 'lock', name);
  ledger.enter(waiters, keys.prefix, 'waiters', name);
  ledger.enter(others[0]!, keys.prefix, 'done', name, tick);
  ledger.enter(others[1]!, keys.prefix, 'tick', name, tick);
  if ([lock, waiters, ...others].includes(keys.inbox(name)))
    throw new Error(`${JSON.stringify(name)} has the key of an inbox`);
  if (/[{}\u0000-\u001f\u007f]/.test(encoded))
    throw new Error(`${JSON.stringify(name)} is encoded with a brace or a control character`);
  const tags = new Set([lock, waiters, ...others].map(hashTag));
  if (tags.size !== 1)
    throw new Error(`The keys of ${JSON.stringify(name)} have the hash tags ${[...tags].join(', ')}`);
  for (const key of [lock, waiters]) {
    if (keys.resourceOf(key) !== name) throw new Error(`${JSON.stringify(key)} is listed as ${keys.resourceOf(key)}`);
  }
  for (const key of others) {
    if (keys.resourceOf(key) !== undefined) throw new Error(`${JSON.stringify(key)} is listed as a lock`);
  }
  // As the scripts find it, for the messages they send.
  const [, told] = /\{([^{}]*)\}$/.exec(lock) ?? [];
  if (told !== encoded) throw new Error(`The scripts take ${JSON.stringify(name)} for ${told}`);
}
