/** A lease of this process on the resource that is explained. */
export interface OwnHold {
  readonly fencingToken: number;
  readonly group: string;
  readonly heldMs: number;
  /** When Redis last confirmed it, the grant included. */
  readonly renewedMsAgo: number;
  readonly isRenewed: boolean;
  readonly leaseMs: number;
  /** Whether the async context that asks holds it. */
  readonly isOfThisCall: boolean;
  /** Whether its work has ended, and a database transaction keeps it. */
  readonly isKeptByTransaction: boolean;
}

/** What this process knows of a resource without asking. */
export interface OwnPart {
  readonly instanceId: string;
  readonly holds: readonly OwnHold[];
  /** How many of its calls wait. */
  readonly waiting: number;
  /** How long the call that waits longest has waited. */
  readonly longestWaitMs: number;
  /** The lease that its first waiting call asks for, and whether that is renewed. */
  readonly wanted: { readonly leaseMs: number; readonly watchdog: boolean } | undefined;
  /** The lease of the module. */
  readonly defaultLeaseMs: number;
}
