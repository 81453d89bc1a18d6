/** `1,234` or `0.57`: so many digits after the point. */
export function formatNumber(number, digits) {
  return number.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** `1,234 (1,200–1,300)`; only the number if there was one round. */
export function formatSpread({ median, min, max }, digits) {
  const [middle, low, high] = [median, min, max].map((number) => formatNumber(number, digits));
  return low === high ? middle : `${middle} (${low}–${high})`;
}
