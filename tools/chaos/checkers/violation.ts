/** What should never have happened, told to the person who has to find out why. */
export interface Violation {
  /** The rule: the name of its checker. */
  readonly rule: string;
  /** One sentence with resource, processes, tokens and times. */
  readonly what: string;
  /** When. */
  readonly at: number;
}

/** What a checker found, and how much it had to look at: a checker that looks at nothing finds nothing. */
export interface Verdict {
  readonly rule: string;
  readonly looked: number;
  readonly violations: readonly Violation[];
  /**
   * What one Redis cannot prevent, because it lost its data or its clock moved. That it happens is to be seen, and it is no
   * violation.
   */
  readonly shown?: readonly Violation[];
}
