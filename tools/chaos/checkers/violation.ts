/** A broken promise, described for the person who investigates it. */
export interface Violation {
  /** The rule: the name of its checker. */
  readonly rule: string;
  /** One sentence with resource, processes, tokens and times. */
  readonly what: string;
  /** When. */
  readonly at: number;
}

/** The findings of a checker, and the number of cases it had: a checker without cases finds nothing. */
export interface Verdict {
  readonly rule: string;
  readonly looked: number;
  readonly violations: readonly Violation[];
  /**
   * Effects that one Redis can't prevent after it lost data or its clock moved. The run must show them; they are no
   * violations.
   */
  readonly shown?: readonly Violation[];
}
