/** A lease of this process on the resource that is explained. */
export interface OwnHold {
  readonly fencingToken: number;
  readonly group: string;
  readonly heldMs: number;
  readonly isRenewed: boolean;
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
  /** Whether the lease that its first waiting call asks for is renewed. */
  readonly wanted: { readonly watchdog: boolean } | undefined;
}
