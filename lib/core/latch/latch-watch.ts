import { heartbeatPause } from '../places/attempts.js';
import { notOpened, otherCount } from './latch-errors.js';
import type { LatchState, LatchStore, LatchSpec } from '../store/latch-store.js';
import { PLACE_MS, SharedWait, type WaitDeps } from '../acquiring/shared-wait.js';

/** What latches need. */
export type LatchDeps = WaitDeps & { readonly store: LatchStore };

/** All calls of this process that wait for one latch. */
export class LatchWatch extends SharedWait<LatchState> {
  #remaining: number;

  constructor(
    readonly spec: LatchSpec,
    protected readonly deps: LatchDeps,
    onEnd: () => void,
  ) {
    super(spec.name, onEnd);
    this.#remaining = spec.count;
  }

  /** An open latch that expires stays for as long as its place, for the clients that have not seen it. */
  protected send(): Promise<LatchState> {
    return this.deps.store.wait(this.spec, PLACE_MS);
  }

  protected onReply(attempt: number, state: LatchState): void {
    if (this.isOver) return;
    if (state.count !== this.spec.count) {
      this.end((call) => call.fail(otherCount(this.spec, state)));
    } else if (state.remaining === 0) {
      // An open latch stays open: a late reply is as good.
      this.end((call) => call.succeed());
    } else {
      this.log.busy({ ttlMs: state.ttlMs });
      this.#remaining = state.remaining;
      if (this.isLatest(attempt)) this.askLater(heartbeatPause(Infinity, PLACE_MS, this.deps.random));
    }
  }

  protected inVain(waitedMs: number, attempts: number): Error {
    return notOpened(this.spec, this.#remaining, waitedMs, attempts, this.log.holderTtlMs);
  }
}
