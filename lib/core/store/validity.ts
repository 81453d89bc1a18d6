/**
 * Until when a lease may be trusted: counted from the moment its command was *sent*, so that the time on the wire is
 * never given away, less an allowance for the drift between this process's clock and the clock of Redis (1 % + 2 ms).
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ (validity time and clock drift)
 */
export function validUntil(sentAt: number, leaseMs: number): number {
  return sentAt + leaseMs - (leaseMs * 0.01 + 2);
}

/** The lease to ask for where it is to be trusted for `validMs`. */
export function leaseFor(validMs: number): number {
  return Math.ceil((validMs + 2) / 0.99);
}
