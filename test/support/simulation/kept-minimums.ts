import assert from 'node:assert/strict';
import { fencingTickOf } from '../../../lib/kernel/store/fencing-token.js';
import type { LockMode } from '../../../lib/kernel/api/lock-options.js';
import { isExcluding } from './valid-leases.js';

const TICKS_PER_MS = 50;
/** Grants of one moment have ticks one after another: so many may be ahead of the clock of the store. */
const TICKS_AHEAD = 25;

interface Granted {
  readonly resource: string;
  readonly mode: LockMode;
  readonly fencingToken: number;
}

/** Checks grants against releases: no lease that excludes a released one begins before its minimum has passed. */
export class KeptMinimums {
  readonly #granted = new Map<number, Granted>();
  #released: (Granted & { readonly minHoldMs: number })[] = [];
  /** The number of releases before the known end of the minimum. */
  kept = 0;

  granted(grant: Granted): void {
    this.#granted.set(grant.fencingToken, grant);
    for (const released of this.#released) check(released, grant);
  }

  /** An operator ends it. */
  forced(tick: number): void {
    this.#released = this.#released.filter(({ fencingToken }) => fencingTickOf(fencingToken) !== tick);
  }

  /** The store has confirmed the release. */
  released(lease: Granted, minHoldMs: number): void {
    const released = { ...lease, minHoldMs };
    this.#released.push(released);
    this.kept++;
    for (const grant of this.#granted.values()) check(released, grant);
  }
}

function check(released: Granted & { readonly minHoldMs: number }, next: Granted): void {
  const isOther = next.resource !== released.resource || !isExcluding(released.mode, next.mode);
  if (isOther || next.fencingToken <= released.fencingToken) return;
  const ticks = fencingTickOf(next.fencingToken) - fencingTickOf(released.fencingToken);
  const text = `${next.resource} is granted ${ticks / TICKS_PER_MS} ms after a lease of at least ${released.minHoldMs} ms`;
  assert.ok(ticks + TICKS_AHEAD >= released.minHoldMs * TICKS_PER_MS, text);
}
