import { hash } from 'node:crypto';

/**
 * What stands in a grant message in place of the id id. Whoever may use the channels hears these messages, and can write
 * there: the seal tells them nothing, and only Redis and the id can make one before the message is sent. It covers the
 * token and the stamp as well, so nobody can change those.
 *
 * @param terms "token sentAt", as in the message
 */
export function sealOf(terms: string, owner: string): string {
  // What is secret stands at the end: a hash can be continued without knowing what it began with.
  return hash('sha1', `${terms} ${owner}`);
}

/** What stands for an id id in a reply to others. */
export function sealOfOwner(owner: string): string {
  return hash('sha1', owner);
}
