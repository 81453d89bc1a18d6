/** The origin of a call before it is made into text. `stack` is not set until it is recorded, and may never be. */
export interface Origin {
  readonly stack?: string;
}

/** Records the origin of the running call: the stack, from the caller of `below` on. Takes several microseconds. */
export function recordOrigin(below: (...args: never[]) => unknown, origin: Origin = {}): Origin {
  Error.captureStackTrace(origin, below);
  return origin;
}

/** The same from the inside of this library, with its own lines and the lines of the calling application. */
export function recordOriginInside(below: (...args: never[]) => unknown, frames: number): Origin {
  const { stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = frames;
  } catch {
    // The application has frozen it.
  }
  const origin = recordOrigin(below);
  if (Error.stackTraceLimit !== stackTraceLimit) Error.stackTraceLimit = stackTraceLimit;
  return origin;
}

/** The line that made the call: `Class.method (file:line:column)`, or only the place. */
export function callSiteOf(origin: Origin | undefined): string | undefined {
  return linesOf(origin)[0];
}

/** Returns the application's line that made the call, behind the frame of the library's function `behind`. */
export function applicationSiteOf(origin: Origin | undefined, behind?: string): string | undefined {
  const lines = linesOf(origin);
  const from = behind === undefined ? 0 : lines.findIndex((line) => line.includes(behind) && isOwn(line)) + 1;
  // In a bundled file, all lines are the same.
  if (OWN_FOLDERS.length === 0 || (behind !== undefined && from === 0)) return undefined;
  return lines.slice(from).find((line) => !isOwn(line) && !/(?:^|[( ])node:|[\\/]node_modules[\\/]/.test(line));
}

/** The folder of this package, as stacks name it: by its path, or by its URL. */
const OWN_FOLDERS = ownFolders();

function ownFolders(): string[] {
  const file =
    /^(?:.*\()?(?:file:\/\/)?(.*[\\/])(?:kernel[\\/]util[\\/]call-site\.|(?:cjs|esm)[\\/](?:rooms|parts)[\\/])/;
  const folder = file.exec(linesOf(recordOriginInside(ownFolders, 1))[0] ?? '')?.[1];
  return folder === undefined ? [] : [folder, encodeURI(folder)];
}

function isOwn(line: string): boolean {
  return OWN_FOLDERS.some((folder) => line.includes(folder));
}

function linesOf(origin: Origin | undefined): string[] {
  // An application may replace `Error.prepareStackTrace`, and then a stack may be anything.
  const stack: unknown = origin?.stack;
  return typeof stack === 'string' ? [...stack.matchAll(/^\s+at (.+)$/gm)].map(([, line]) => line!) : [];
}
