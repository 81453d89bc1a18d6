import { Refusal } from './reply.js';

/** A header of a request, by its name in small letters. */
export type HeaderOf = (name: string) => string | undefined;

/**
 * Refuses what a page of another site can have a browser send. A form sends no JSON, and a script has to ask first
 * before it sends a header of its own: a server that allows other origins none of this answers that no. It needs no
 * cookie and no memory, so it works on any number of instances, behind any proxy, and without TLS.
 *
 * @param allowedOrigins where the page may stand; not set: a browser says by `Sec-Fetch-Site` whether it is the same
 * @throws Refusal
 */
export function refuseForged(header: HeaderOf, allowedOrigins: readonly string[] | undefined): void {
  const type = header('content-type') ?? '';
  if (!/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new Refusal('NOT_JSON', 'The content-type must be application/json.');
  }
  if (header('x-lock-console') !== '1') {
    throw new Refusal('FORGED', 'The header x-lock-console: 1 is missing: the page of the console sends it.');
  }
  const site = header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw new Refusal('FORGED', 'The request comes from a page of another site.');
  }
  const origin = header('origin');
  // A sandbox, or a file. A browser that says no site says this, so it is refused where allowedOrigins is not set, too.
  if (origin === 'null') throw new Refusal('FORGED', 'The request comes from a page that has no origin.');
  if (allowedOrigins && origin !== undefined && !allowedOrigins.includes(origin)) {
    throw new Refusal('FORGED', 'The request comes from a page of an origin that is not in allowedOrigins.');
  }
}
