/** A number with its noun: `1 lease`, `2 leases`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
