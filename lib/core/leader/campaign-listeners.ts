import { isAbortedBy } from '../util/signals.js';
import type { CampaignCallbacks } from './campaign-options.js';
import type { Clock } from '../util/clock.js';
import type { LockObservers } from '../events/observers.js';
import type { LeaderTerm } from './leader-term.js';
import type { DemotionReason } from './leadership.js';

type CallbackName = 'onElected' | 'onDemoted';

interface RunningCallback {
  readonly callback: CallbackName;
}

/** The callbacks that hear of the terms of one campaign. */
export class CampaignListeners {
  readonly #callbacks: CampaignCallbacks[] = [];
  /** Those that were told of the term that runs. */
  #informed: CampaignCallbacks[] = [];
  /** The callbacks that have not ended. */
  readonly #running = new Set<RunningCallback>();

  constructor(
    private readonly leadership: { readonly name: string; readonly resource: string },
    private readonly deps: { readonly clock: Clock; readonly observers: LockObservers },
  ) {}

  /** @param term the term that runs: the callback hears of it at once */
  add(callbacks: CampaignCallbacks, term: LeaderTerm | undefined): void {
    this.#callbacks.push(callbacks);
    if (term) this.#callElected(callbacks, term);
  }

  elected(term: LeaderTerm): void {
    for (const callbacks of this.#callbacks) this.#callElected(callbacks, term);
  }

  demoted(reason: DemotionReason, term: LeaderTerm): void {
    for (const callbacks of this.#informed.splice(0)) {
      this.#call('onDemoted', term, () => callbacks.onDemoted?.(reason, term));
    }
  }

  /**
   * Waits for the callbacks of a term, because callbacks of two terms never run at the same time. A callback that hangs keeps this
   * instance from campaigning again: after `patienceMs` the observers are told.
   */
  async untilEnd(term: LeaderTerm, patienceMs: number): Promise<void> {
    const { clock } = this.deps;
    const timer = clock.setTimer(
      () => {
        for (const running of this.#running) {
          const error = new Error(
            `${running.callback} still runs ${patienceMs} ms after the term has ended. This instance campaigns again only when it has ` +
              `ended: end it when the signal of the term aborts.`,
          );
          this.#failed(running, error);
        }
      },
      patienceMs,
      { background: true },
    );
    await term.callbacksDone();
    timer.cancel();
  }

  #callElected(callbacks: CampaignCallbacks, term: LeaderTerm): void {
    this.#informed.push(callbacks);
    this.#call('onElected', term, () => callbacks.onElected?.(term));
  }

  #call(callback: CallbackName, term: LeaderTerm, call: () => unknown): void {
    const running = { callback };
    this.#running.add(running);
    const called = term.call(call).catch((error: unknown) => {
      // The signal told the callback to end, and it did.
      if (isAbortedBy(term.signal, error)) return;
      this.#failed(running, error);
    });
    void called.finally(() => this.#running.delete(running));
  }

  #failed({ callback }: RunningCallback, error: unknown): void {
    const { observers } = this.deps;
    const { name: leadership, resource } = this.leadership;
    const group = observers.groups.of(resource, resource);
    observers.emit({
      type: 'callbackFailed',
      service: observers.service,
      group,
      leadership,
      resource,
      callback,
      error,
    });
  }
}
