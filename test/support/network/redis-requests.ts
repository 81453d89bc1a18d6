import { randomBytes } from 'node:crypto';

/** Splits what a client sends into its requests. */
export class RequestSplitter {
  #rest: Buffer = Buffer.alloc(0);

  /** Gives the requests that are complete now. What is no RESP is given as it comes. */
  push(chunk: Buffer): Buffer[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const requests: Buffer[] = [];
    let from = 0;
    for (let to = endOfRequest(bytes, from); to !== undefined; to = endOfRequest(bytes, from)) {
      requests.push(bytes.subarray(from, to));
      from = to;
    }
    this.#rest = bytes.subarray(from);
    return requests;
  }
}

/** A request as a client sends it. */
export function requestOf(...parts: readonly string[]): string {
  return `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`;
}

/** The name of the command, in small letters. */
export function commandOf(request: Buffer): string {
  const start = request.subarray(0, 64).toString('latin1');
  return /^\*\d+\r\n\$\d+\r\n([^\r]*)/.exec(start)?.[1]!.toLowerCase() ?? '';
}

export function isScript(request: Buffer): boolean {
  return /^eval(sha)?$/.test(commandOf(request));
}

/**
 * A request that does nothing and that any user may send, because there is no such command. Behind another one it tells,
 * by its error, that Redis is done with that one.
 */
export class Marker {
  readonly #name = `marker-${randomBytes(8).toString('hex')}`;

  get request(): Buffer {
    return Buffer.from(requestOf(this.#name));
  }

  /** The replies before the marker, and after; `undefined` until it has arrived. */
  split(replies: Buffer): { before: Buffer; after: Buffer } | undefined {
    const at = replies.indexOf(this.#name);
    const end = replies.indexOf('\r\n', at);
    if (at < 0 || end < 0) return undefined;
    return { before: replies.subarray(0, replies.lastIndexOf('-ERR', at)), after: replies.subarray(end + 2) };
  }
}

/** Returns true if the last of these replies is an error. */
export function endsWithError(replies: Buffer): boolean {
  const start = replies.lastIndexOf('\r\n', -3);
  return replies[start < 0 ? 0 : start + 2] === '-'.charCodeAt(0);
}

/** The end of the request that begins here; `undefined` if it is incomplete. */
function endOfRequest(bytes: Buffer, from: number): number | undefined {
  if (from >= bytes.length) return undefined;
  if (bytes[from] !== '*'.charCodeAt(0)) return bytes.length;
  let lineEnd = bytes.indexOf('\r\n', from);
  let parts = numberIn(bytes, from, lineEnd);
  while (lineEnd >= 0 && parts-- > 0) {
    const start = lineEnd + 2;
    lineEnd = bytes.indexOf('\r\n', start);
    // Past the text of the part: the end of its own line.
    if (lineEnd >= 0) lineEnd += 2 + numberIn(bytes, start, lineEnd);
  }
  return lineEnd < 0 || lineEnd + 2 > bytes.length ? undefined : lineEnd + 2;
}

function numberIn(bytes: Buffer, from: number, to: number): number {
  return Number(bytes.toString('latin1', from + 1, to));
}
