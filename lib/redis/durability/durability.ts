/** How many replicas must have a grant, and how long to wait for them, in milliseconds. */
export interface Durability {
  readonly replicas: number;
  readonly timeoutMs: number;
}
