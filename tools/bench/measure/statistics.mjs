/** @param {ArrayLike<number>} numbers @returns {number} NaN when there are none */
export function median(numbers) {
  return quantile(numbers, 0.5);
}

/** The smallest value that at least the share `q` of all values does not exceed; the middle between two for the median. */
export function quantile(numbers, q) {
  const sorted = Float64Array.from(numbers).sort();
  if (sorted.length === 0) return Number.NaN;
  if (q === 0.5 && sorted.length % 2 === 0) return (sorted[sorted.length / 2 - 1] + sorted[sorted.length / 2]) / 2;
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)];
}

export function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Without spreading: arguments are limited, measurements are not. */
export function largest(numbers) {
  return numbers.reduce((most, number) => Math.max(most, number), -Infinity);
}

/** @returns {{ median: number, min: number, max: number }} */
export function spread(numbers) {
  return { median: median(numbers), min: -largest(numbers.map((number) => -number)), max: largest(numbers) };
}

/** Rotates the order by round, so that no contestant always follows the same one. */
export function rotated(list, by) {
  const start = by % list.length;
  return [...list.slice(start), ...list.slice(0, start)];
}
