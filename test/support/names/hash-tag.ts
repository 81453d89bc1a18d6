/**
 * The part of a key that decides its slot on a cluster, computed like the server does: the text between the first `{`
 * and the next `}`, or the whole key if that is empty. Keys with one tag share a slot.
 *
 * @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 */
export function hashTag(key: string): string {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}
