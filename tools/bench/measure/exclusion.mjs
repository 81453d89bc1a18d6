/**
 * How often a lock let somebody in whom it should have kept out. Each section is stamped inside of its lease, by the clock
 * that all processes share, so any overlap is a broken lock; and, unlike a counter in Redis, the stamps cost the section
 * nothing.
 *
 * @param {{ entered: Float64Array, left: Float64Array, writes?: Uint8Array }[]} processes with `writes`, which tells writers
 *   from readers, readers may be inside with readers
 * @param {number} [permits] without it, so many may be inside at once
 * @returns {number} how many sections began while those before them did not admit them
 */
export function overlaps(processes, permits = 1) {
  const entered = concat(processes.map((each) => each.entered));
  const left = concat(processes.map((each) => each.left));
  const writers = processes.some(({ writes }) => writes) && processes.flatMap(writersOf);
  const order = Uint32Array.from(entered, (_, index) => index).sort((a, b) => entered[a] - entered[b]);
  let inside = [];
  let found = 0;
  for (const index of order) {
    inside = inside.filter((other) => left[other] > entered[index]);
    const isAdmitted = writers
      ? inside.length === 0 || ![index, ...inside].some((each) => writers[each])
      : inside.length < permits;
    if (!isAdmitted) found++;
    inside.push(index);
  }
  return found;
}

/** Whether each section of a process is a writer's: the waits of those who never got in come after them. */
function writersOf({ entered, writes }) {
  return [...writes.subarray(0, entered.length)];
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
