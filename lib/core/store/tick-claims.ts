import type { TickDue } from './tick-due.js';
import type { Tick } from './tick-store.js';

/** What stands in place of the claimant once a tick has run or was dropped. */
export const FINISHED = 'finished';

/** What stands in place of the claimant once a tick was given back. Behind it may stand {@link RERUNS}. */
export const RETURNED = 'returned';
/** What stands behind the id once the run was granted: for the first time, or after another id's. */
export const RUNS = 'runs';
export const RERUNS = 'reruns';

/** How the claim of a tick is to be changed. */
export interface ClaimChange {
  /** Who asks. */
  readonly owner: string;
  /** Who is to have the tick, or {@link FINISHED}. Nothing to look only. */
  readonly to?: string;
  /** Whose claim it may take the place of, beside none at all and one that was given back. */
  readonly from?: string;
  /** Take the place of any claim but {@link FINISHED}. */
  readonly force?: boolean;
  /** Gives this claim back. */
  readonly drop?: string;
  /** How long what stands then is remembered, in milliseconds; nothing: as long as it would be. */
  readonly keepMs?: number;
  /** When the tick is due; what is written is noted as the last tick of the job. */
  readonly due?: TickDue | undefined;
  /** Whether a tick that nothing stands for is refused where it is late or early; see {@link TickNode.exchange}. */
  readonly isJudged?: boolean;
}

/** Claims of ticks, without the locks of their jobs: what a node of a quorum keeps. A rejection is a `LockStoreError`. */
export interface TickNode {
  /**
   * Changes the claim where it may, in one step.
   *
   * @returns what stands then, with a hash in place of another id's id where it is a secret;
   * `null` for nothing; or 'late' or 'early' and by how many milliseconds the tick is late, for one that is refused
   */
  exchange(tick: Tick, change: ClaimChange): Promise<string | null>;
}

/** The claim of an id whose run was granted. */
export function claimText(claimant: string, state: typeof RUNS | typeof RERUNS): string {
  return `${claimant} ${state}`;
}

/** The claimant, or {@link RETURNED}, or '' where nothing stands; and {@link RUNS}, {@link RERUNS}, or '' where no run was granted. */
export function readClaim(text: string | null | undefined): { readonly claimant: string; readonly state: string } {
  // From the end: in memory an id may be called anything.
  const [, claimant = '', state = ''] = /^(.*?)(?: (runs|reruns))?$/s.exec(text ?? '')!;
  return { claimant, state };
}

/** What stands in place of a claim that was given back: a run that another id may have begun stays one. */
export function returnedFrom(text: string): string {
  return readClaim(text).state === RERUNS ? claimText(RETURNED, RERUNS) : RETURNED;
}

/** Whether the claim is of this id. A quorum puts an id between the id and the state. */
export function isClaimOf(text: string, owner: string): boolean {
  return text === owner || text.startsWith(`${owner} `);
}
