/** Where a call came from, before it is made into text. `stack` is not set until it is recorded, and may never be. */
export interface Origin {
  readonly stack?: string;
}

/**
 * Records where the running call comes from. That costs as much as a hand-over inside the process.
 *
 * @param below the function that was called there
 * @param origin where it is recorded
 */
export function recordOrigin(below: (...args: never[]) => unknown, origin: Origin = {}): Origin {
  Error.captureStackTrace(origin, below);
  return origin;
}

/** The line that made the call: `Class.method (file:line:column)`, or only the place. */
export function callSiteOf(origin: Origin | undefined): string | undefined {
  // An application may replace `Error.prepareStackTrace`, and then a stack may be anything.
  const stack: unknown = origin?.stack;
  return typeof stack === 'string' ? /^\s+at (.+)$/m.exec(stack)?.[1] : undefined;
}
