import { Option, type OptionsOf, OptionTable } from '../../../../kernel/api/validation.js';
import type { Blocker } from './blockers.js';
import type { Durations } from './duration-histogram.js';

/** The module option `contention`. */
export type ContentionSettings = {
  /**
   * `true` counts for `locks.contention()` from the start of the application, at a small cost. Otherwise, counting
   * starts with the first call of that method.
   *
   * @default false
   */
  fromStart?: boolean;
  /**
   * With n, records the call site of every nth `acquire` or `tryAcquire` call that has waited; with 0, of none.
   *
   * @allowed 0 to 1000000
   * @default 64
   */
  callSiteEvery?: number;
};

export const CONTENTION_SETTINGS = new OptionTable({
  fromStart: Option.flag().default(false),
  callSiteEvery: Option.integer(0, 1_000_000, 'calls').default(64),
} satisfies OptionsOf<ContentionSettings>);

/** Options of `locks.contention()`. */
export interface ContentionOptions {
  /**
   * The maximum number of groups, and of pairs of groups, to return. The longest waits come first.
   *
   * @allowed 1 to 1000
   * @default 50
   */
  top?: number;
  /**
   * `true` resets the counts to zero after this call.
   *
   * @default false
   */
  reset?: boolean;
}

export const CONTENTION_OPTIONS = new OptionTable({
  top: Option.integer(1, 1_000, 'rows').default(50),
  reset: Option.flag().default(false),
} satisfies OptionsOf<ContentionOptions>);

/** The waits and holds of one group of calls in this process. */
export interface GroupContention {
  /**
   * `Class.method` of a decorated method, or a part of the resource; `_other` for all calls whose group is not counted
   * separately.
   */
  readonly group: string;
  /** The number of calls that are waiting now. */
  readonly waiting: number;
  /** The number of calls that had to wait, and no longer do. */
  readonly waited: number;
  /**
   * The durations of calls to acquire that were granted, or that waited and failed. Calls that were rejected at once,
   * such as a `tryAcquire` of a busy resource, are left out, and so are candidates for a leadership.
   */
  readonly wait: Durations;
  /** The durations of leases that have ended. */
  readonly hold: Durations;
}

/** The groups of calls in this process, and which group waited for which. Frozen, and can be serialized as JSON. */
export interface Contention {
  /** The name of the lock service. */
  readonly service: string;
  /** The name of this process. */
  readonly instanceId: string;
  /** When counting began, by the clock of this machine, in epoch milliseconds. */
  readonly since: number;
  /** The time for which calls have been counted, in milliseconds. */
  readonly forMs: number;
  /** The waits and holds of each group. Groups that have waited longest in total come first. */
  readonly groups: readonly GroupContention[];
  /** The pairs of groups in which one waited for the other. Pairs with the longest waits in total come first. */
  readonly blockers: readonly Blocker[];
}
