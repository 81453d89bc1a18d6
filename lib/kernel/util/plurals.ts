/** A number with its noun: `1 lease`, `2 leases`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** The same, in the past: `1 lease was`, `2 leases were`. */
export function countWas(number: number, noun: string): string {
  return `${count(number, noun)} ${number === 1 ? 'was' : 'were'}`;
}

/** A place in line: `1st`, `2nd`, `3rd`, `11th`, `112th`. */
export function ordinal(place: number): string {
  const isTeen = Math.floor(place / 10) % 10 === 1;
  return `${place}${(isTeen ? undefined : ['th', 'st', 'nd', 'rd'][place % 10]) ?? 'th'}`;
}
