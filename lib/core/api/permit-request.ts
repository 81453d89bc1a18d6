/** What a contender wants of a semaphore, and what it takes that semaphore for. */
export interface PermitRequest {
  /** How many permits it wants, all or none. */
  readonly count: number;
  /** How many it believes there are. */
  readonly total: number;
  /** Whether its total is a decision, which holds for those who state another one too. */
  readonly isResized: boolean;
}

/** Whether the one would do for the other; also where neither is about a semaphore. */
export function isSameRequest(a: PermitRequest | undefined, b: PermitRequest | undefined): boolean {
  return a === b || (a?.count === b?.count && a?.total === b?.total && a?.isResized === b?.isResized);
}
