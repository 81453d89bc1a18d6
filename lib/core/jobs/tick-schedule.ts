/** Ticks that were due one after another. */
export interface DueTicks {
  /** How many there were. */
  readonly count: number;
  /** The first of all of them. Not set if there are none. */
  readonly first?: number;
  /** The newest of them, oldest first, in milliseconds since the Unix epoch. */
  readonly ticks: readonly number[];
}

/** `undefined` where there is none. */
export interface TicksAround {
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** When the ticks of a job are due. Times are in milliseconds since the Unix epoch. */
export interface TickSchedule {
  /** What it says, with its time zone. Another text is another schedule. */
  readonly text: string;
  /** The ticks before and after this one. Cheap for a process that asks for every tick in turn. */
  around(tick: number): TicksAround;
  /** The first tick after a time; `undefined` if there is none any more. */
  after(time: number): number | undefined;
  /**
   * Finds the ticks after a time and not after another. Gives the event loop a turn from time to time.
   *
   * @param most how many of the newest to return; the others are only counted
   */
  between(after: number, until: number, most: number): Promise<DueTicks>;
}
