/** One line of the table: a figure, what it should be, and what was seen. */
export interface Row {
  readonly what: string;
  readonly target: string;
  readonly seen: string;
  readonly met: boolean;
}

/** The result of one part of a run. */
export interface Outcome {
  readonly rows: readonly Row[];
  /** For the person who has to find out why: everything that should not have been. */
  readonly complaints: readonly string[];
}

export function hasPassed({ rows, complaints }: Outcome): boolean {
  return complaints.length === 0 && rows.every(({ met }) => met);
}

export function atLeast(what: string, target: number, seen: number, more = ''): Row {
  return { what, target: `at least ${grouped(target)}`, seen: `${grouped(seen)}${more}`, met: seen >= target };
}

export function none(what: string, seen: number, more = ''): Row {
  return { what, target: '0', seen: `${grouped(seen)}${more}`, met: seen === 0 };
}

/** 12,345 */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
