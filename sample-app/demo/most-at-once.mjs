// @ts-check

/**
 * Returns the maximum number of visitors at the same time, by the order in which they arrived and left.
 *
 * @param {import('../src/time-clock/time-clock.js').Stamp[]} stamps
 */
export function mostAtOnce(stamps) {
  const inside = new Set();
  let most = 0;
  for (const { visit, at } of stamps) {
    if (at === 'in') inside.add(visit);
    else inside.delete(visit);
    most = Math.max(most, inside.size);
  }
  return most;
}
