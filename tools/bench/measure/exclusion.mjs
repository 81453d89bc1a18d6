/**
 * Counts the sections that a lock should have excluded. Each section is stamped inside of its lease, by the clock that
 * all processes share, so any overlap is a broken lock; and, unlike a counter in Redis, the stamps cost the section
 * nothing.
 *
 * @param {{ entered: Float64Array, left: Float64Array }[]} processes
 * @returns {number} the sections that began while another one was inside
 */
export function overlaps(processes) {
  const entered = concat(processes.map((each) => each.entered));
  const left = concat(processes.map((each) => each.left));
  const order = Uint32Array.from(entered, (_, index) => index).sort((a, b) => entered[a] - entered[b]);
  let leftAt = -Infinity;
  let found = 0;
  for (const index of order) {
    if (entered[index] < leftAt) found++;
    leftAt = Math.max(leftAt, left[index]);
  }
  return found;
}

/** @param {Float64Array[]} parts */
export function concat(parts) {
  const whole = new Float64Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
