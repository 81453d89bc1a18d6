import { inspect, type InspectOptions } from 'node:util';
import type { Lease } from '../api/lease.js';
import { escapeUnsafe } from '../util/quoted.js';

/** How a lease looks in a log: what a reader wants to know of it, and never its owner id, which is a secret. */
export abstract class PrintableLease {
  abstract readonly fencingToken: number;

  /** One token, or one for each of several resources. Never throws. */
  protected get printedToken(): object {
    return { fencingToken: this.fencingToken };
  }

  toJSON(this: Lease & PrintableLease) {
    const { resource, mode, printedToken } = this;
    return { resource, mode, ...printedToken, isHeld: this.isHeld(), remainingMs: Math.round(this.remainingMs()) };
  }

  [inspect.custom](this: Lease & PrintableLease, _depth: number, options: InspectOptions): string {
    return `Lease ${escapeUnsafe(inspect(this.toJSON(), options))}`;
  }
}
