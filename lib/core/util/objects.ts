export function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object';
}

/** The items in groups of this size, the last of which may be smaller. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let index = 0; index < items.length; index += size) parts.push(items.slice(index, index + size));
  return parts;
}
