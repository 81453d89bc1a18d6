/** Where a call came from, before it is made into text. `stack` is not set if none was recorded. */
export interface Origin {
  readonly stack?: string;
}

/** Records where the running call comes from. @param below the function that was called there */
export function recordOrigin(below: (...args: never[]) => unknown): Origin {
  const origin: Origin = {};
  Error.captureStackTrace(origin, below);
  return origin;
}

/** The line that made the call: `Class.method (file:line:column)`, or only the place. */
export function callSiteOf(origin: Origin | undefined): string | undefined {
  // An application may replace `Error.prepareStackTrace`, and then a stack may be anything.
  const stack: unknown = origin?.stack;
  return typeof stack === 'string' ? /^\s+at (.+)$/m.exec(stack)?.[1] : undefined;
}
