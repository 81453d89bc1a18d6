/** When the ticks of a job are due. Times are in milliseconds since the Unix epoch. */
export interface TickSchedule {
  /** What it says, with its time zone. Another text is another schedule. */
  readonly text: string;
  /** The ticks before and after this one, where there are some. Cheap for a process that asks for every tick in turn. */
  around(tick: number): { readonly before: number | undefined; readonly after: number | undefined };
  /** The first tick after a time; `undefined` if there is none any more. */
  after(time: number): number | undefined;
  /**
   * Finds the ticks after a time and not after another. Gives the event loop a turn from time to time.
   *
   * @param most how many of the newest to return; the others are only counted
   * @returns how many there were, the first of all of them if there are some, and the newest, oldest first
   */
  between(
    after: number,
    until: number,
    most: number,
  ): Promise<{ readonly count: number; readonly first?: number; readonly ticks: readonly number[] }>;
}
