import { strict as assert } from 'node:assert';
import { TOKENS_PER_TICK } from '../../support/simulation/lock-model.js';

/** Which real token stands for which one of the model: the same ticks in the same order, the same numbers inside them. */
export class TokenOrder {
  readonly #realTicks = new Map<number, number>();

  /** Notes that both name the same lease. @throws if they did not before, or if the order differs */
  note(model: number, real: number): void {
    const [tick, realTick] = [Math.floor(model / TOKENS_PER_TICK), Math.floor(real / TOKENS_PER_TICK)];
    assert.equal(real % TOKENS_PER_TICK, model % TOKENS_PER_TICK, 'the number inside the tick');
    const known = this.#realTicks.get(tick);
    if (known !== undefined) return assert.equal(realTick, known, 'the same lease has another token');
    for (const [other, realOther] of this.#realTicks) {
      assert.ok(other < tick === realOther < realTick && realOther !== realTick, 'tokens do not grow with the grants');
    }
    this.#realTicks.set(tick, realTick);
  }

  real(model: number): number {
    const tick = this.#realTicks.get(Math.floor(model / TOKENS_PER_TICK));
    assert.ok(tick !== undefined, 'a token that was never seen');
    return tick * TOKENS_PER_TICK + (model % TOKENS_PER_TICK);
  }
}
