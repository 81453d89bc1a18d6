/** `1,234` or `0.57`: so many digits after the point. */
export function formatNumber(number, digits) {
  return number.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** `1,234 (1,200–1,300)`; only the number if there was one round. */
export function formatSpread({ median, min, max }, digits) {
  const [middle, low, high] = [median, min, max].map((number) => formatNumber(number, digits));
  return low === high ? middle : `${middle} (${low}–${high})`;
}

/** `0.98x`, with fewer digits where the number is large. */
export function formatRatio(number, unit) {
  return `${formatNumber(number, Math.abs(number) >= 100 ? 0 : 2)}${unit}`;
}

/** @returns {string} `met`, `missed` or `not measured` */
export function verdict({ passed }) {
  if (passed === null) return 'not measured';
  return passed ? 'met' : 'missed';
}
