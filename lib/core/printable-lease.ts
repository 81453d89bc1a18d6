import { inspect, type InspectOptions } from 'node:util';
import type { Lease } from './lease.js';

/** How a lease looks in a log: what somebody wants to know of it, and never its owner id, which is a secret. */
export abstract class PrintableLease {
  toJSON(this: Lease & PrintableLease) {
    const { resource, mode, fencingToken } = this;
    return { resource, mode, fencingToken, isHeld: this.isHeld(), remainingMs: Math.round(this.remainingMs()) };
  }

  [inspect.custom](this: Lease & PrintableLease, _depth: number, options: InspectOptions): string {
    return `Lease ${inspect(this.toJSON(), options)}`;
  }
}
