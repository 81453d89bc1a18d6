import { hash } from 'node:crypto';

/**
 * Returns the seal that replaces the owner id in a grant message. A process that may use the channels can read these
 * messages and write others. The seal reveals nothing about the id, and only Redis and the owner can make a seal before
 * the message is sent. The seal covers the token and the stamp as well, so that no other process can change them.
 *
 * A watcher of a resource has such a secret id too, and the message that the resource is free has such a seal.
 *
 * @param said "token sentAt", "kept left sentAt", or the mark of the watcher, as in the message
 */
export function sealOf(said: string, owner: string): string {
  // The secret comes last: SHA-1 can be continued from a known hash without knowing what was hashed.
  return hash('sha1', `${said} ${owner}`);
}

/** Returns the seal that replaces an owner id in a reply to other owners. */
export function sealOfOwner(owner: string): string {
  return hash('sha1', owner);
}
