import { flag, integer, type OptionsOf, OptionTable } from '../../../../kernel/api/validation.js';
import type { Blocker } from './blockers.js';
import type { Durations } from './duration-histogram.js';

/** The module option `contention`. */
export type ContentionSettings = {
  /**
   * `true` counts from the start of the application. Otherwise counting starts, and costs something, with the first
   * call of `locks.contention()`.
   *
   * @default false
   */
  fromStart?: boolean;
  /**
   * Records the call site of `acquire` or `tryAcquire` for one of this many calls that have waited; 0 for none.
   *
   * @allowed 0 to 1000000
   * @default 64
   */
  callSiteEvery?: number;
};

export const CONTENTION_SETTINGS = new OptionTable({
  fromStart: flag().default(false),
  callSiteEvery: integer(0, 1_000_000, 'calls').default(64),
} satisfies OptionsOf<ContentionSettings>);

/** Options of `locks.contention()`. */
export interface ContentionOptions {
  /**
   * The maximum number of groups and pairs of groups to return, longest waits first.
   *
   * @allowed 1 to 1000
   * @default 50
   */
  top?: number;
  /**
   * Counts again from zero after this call.
   *
   * @default false
   */
  reset?: boolean;
}

export const CONTENTION_OPTIONS = new OptionTable({
  top: integer(1, 1_000, 'rows').default(50),
  reset: flag().default(false),
} satisfies OptionsOf<ContentionOptions>);

/** The waits and holds of one group of calls of this process. */
export interface GroupContention {
  /** `Class.method` of a decorated method, or a part of the resource; `_other` for all that have none of their own. */
  readonly group: string;
  /** The number of its calls that wait at this moment. */
  readonly waiting: number;
  /**
   * The number of its calls that had to wait, and have ended their wait. The others were granted or refused at once.
   */
  readonly waited: number;
  /**
   * Durations of its calls to acquire: granted ones, and the ones that waited and failed. A call that was refused at
   * once, such as a `tryAcquire` that finds the resource busy, is left out, and so are the candidates of a leadership.
   */
  readonly wait: Durations;
  /** Durations of its leases that have ended. */
  readonly hold: Durations;
}

/** The groups of calls in this process, and which waits for which. Frozen, and can be serialized as JSON. */
export interface Contention {
  /** The name of the lock service. */
  readonly service: string;
  /** This process. */
  readonly instanceId: string;
  /** When counting began, by the clock of this machine, in epoch milliseconds. */
  readonly since: number;
  /** The time since then, in milliseconds. */
  readonly forMs: number;
  /** The waits and holds of each group. Groups that have waited longest in total come first. */
  readonly groups: readonly GroupContention[];
  /** The pairs of groups in which one waited for the other. Pairs with the longest waits in total come first. */
  readonly blockers: readonly Blocker[];
}
