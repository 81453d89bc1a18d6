import assert from 'node:assert/strict';
import { isSharedMode, type LockMode } from '../../../lib/kernel/api/lock-options.js';

/** Checks that tokens grow: each lease has a larger one than all earlier leases that it excludes. */
export class TokenOrder {
  readonly #last = new Map<string, { any: number; excluding: number }>();

  /** @throws AssertionError */
  granted(resource: string, mode: LockMode, token: number): void {
    const { any, excluding } = this.#last.get(resource) ?? { any: 0, excluding: 0 };
    const isShared = isSharedMode(mode);
    assert.ok(token > (isShared ? excluding : any), `a later lease of ${resource} has no larger token`);
    this.#last.set(resource, { any: Math.max(any, token), excluding: isShared ? excluding : token });
  }
}
