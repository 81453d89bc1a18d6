/** Whether an error says that this signal aborted the work: it is the reason, or the AbortError that Node wraps it in. */
export function isAbortedBy(signal: AbortSignal, error: unknown): boolean {
  if (!signal.aborted) return false;
  return (
    error === signal.reason || (error instanceof Error && error.name === 'AbortError' && error.cause === signal.reason)
  );
}
