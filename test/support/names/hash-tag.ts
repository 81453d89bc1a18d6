/**
 * What of a key decides about its slot on a cluster, as the server finds it: what stands between the first `{` and the next `}`,
 * unless that is nothing; then it is the whole key. Keys with one tag share a slot.
 *
 * @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 */
export function hashTag(key: string): string {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}
