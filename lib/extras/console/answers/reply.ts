import { createHash } from 'node:crypto';
import { type ConsoleErrorCode, type ErrorBody, CONSOLE_ERRORS, CONSOLE_SCHEMA } from '../bodies.js';

/** What is sent back: by the adapter of Nest, or by a server of Node. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Scripts and styles of the console's own files only; nothing may frame it, and no text becomes a script. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const;

/** Now, by the clock of Redis: the page counts ages by it. */
const NOW_HEADER = 'x-lock-console-now';

/** A request that is answered by an error. */
export class Refusal extends Error {
  constructor(
    readonly code: ConsoleErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** A file of the page: it is asked for each time, and sent where it has changed. */
export function fileReply(type: string, content: string, ifNoneMatch: string | undefined): Reply {
  const headers = { ...HEADERS, 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-cache' };
  return withTag(headers, `"${digest(content)}"`, content, ifNoneMatch);
}

/** From an address without a slash at the end: relative, so that a proxy may have changed what stands before. */
export function redirectReply(lastSegment: string, query: string): Reply {
  const location = `${lastSegment}/${query}`;
  return { status: 308, headers: { ...HEADERS, location, 'cache-control': 'no-store' } };
}

/** What a view shows, or 304 where nothing but the time has changed. */
export function viewReply(body: object, now: number, ifNoneMatch: string | undefined): Reply {
  const whole = { schemaVersion: CONSOLE_SCHEMA, ...body };
  const tag = `W/"${digest(JSON.stringify(whole, withoutProgress))}"`;
  return withTag(jsonHeaders(now), tag, JSON.stringify(whole), ifNoneMatch);
}

export function doneReply(body: object, now: number): Reply {
  return { status: 200, headers: jsonHeaders(now), body: JSON.stringify({ schemaVersion: CONSOLE_SCHEMA, ...body }) };
}

export function errorReply({ code, message }: Refusal, now: number): Reply {
  const body: ErrorBody = { error: { code, message } };
  return { status: CONSOLE_ERRORS[code], headers: jsonHeaders(now), body: JSON.stringify(body) };
}

function jsonHeaders(now: number): Record<string, string> {
  return {
    ...HEADERS,
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    [NOW_HEADER]: String(Math.round(now)),
  };
}

function withTag(headers: Record<string, string>, etag: string, body: string, ifNoneMatch = ''): Reply {
  // A proxy that compresses may have made a strong one weak.
  const bare = etag.replace(/^W\//, '');
  const known = ifNoneMatch.split(',').map((each) => each.trim().replace(/^W\//, ''));
  const hasIt = known.includes(bare);
  return { status: hasIt ? 304 : 200, headers: { ...headers, etag }, ...(!hasIt && { body }) };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** Numbers of these fields change from look to look where nothing happens: only a change of so much counts. */
const STEPS: Readonly<Record<string, number>> = {
  at: Infinity,
  roundTripMs: 10,
  loopDelayMs: 50,
  blockedMs: 50,
  forMs: 60_000,
};
const TIME_STEP = 1_000;

/** Leaves out what the passing of time alone changes. */
function withoutProgress(key: string, value: unknown): unknown {
  if (typeof value !== 'number') return value;
  const step = STEPS[key] ?? (/(?:^since|Since|^until|At)$/.test(key) ? TIME_STEP : undefined);
  return step === undefined ? value : step === Infinity ? undefined : Math.round(value / step);
}
