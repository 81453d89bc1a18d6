// The common part of scenarios: worker processes, rounds in which all contestants take turns, and failures.
import { CALLS, contestants, OURS } from './contestants/index.mjs';
import { rotated } from './measure/statistics.mjs';
import { Fleets } from './processes/fleets.mjs';

/** The contestants of a smoke run: enough to run everything once. */
const SMOKE = ['ping', 'raw', 'raw-fenced', OURS, ...CALLS.map(({ call }) => `${OURS}:${call}`), 'redis-semaphore'];

/** The lock let two in at once. */
export class ExclusionBroken extends Error {
  name = 'ExclusionBroken';
}

export class Bench {
  /** Violations by our own package; the run ends with an exit code for them. @type {string[]} */
  failures = [];
  #tunings = new Map();
  #names = 0;

  /**
   * @param {object} options
   * @param {string} options.url of a Redis that nothing else uses
   * @param {number} options.rounds
   * @param {boolean} options.quick a smoke run: everything is shorter
   * @param {(line: string) => void} options.say
   * @param {readonly import('./contestants/index.mjs').Contestant[]} [options.everyone] the contestants, in place of
   *   the scenario's
   */
  constructor({ url, rounds, quick, say, everyone }) {
    Object.assign(this, { url, rounds, quick, say, everyone, fleets: new Fleets(url) });
  }

  /** `usual`, or much less in a smoke run. */
  ms(usual) {
    return this.quick ? Math.max(100, Math.round(usual / 15)) : usual;
  }

  count(usual, quick) {
    return this.quick ? quick : usual;
  }

  /** @param {...('ours' | 'call' | 'variant' | 'peer' | 'baseline')} kinds */
  contestants(...kinds) {
    if (this.everyone) return this.everyone;
    return contestants(...kinds).filter(({ name }) => !this.quick || SMOKE.includes(name));
  }

  /** Returns an unused resource. */
  resource(scenario) {
    return `${scenario}:${++this.#names}`;
  }

  /**
   * Lets everyone take their turn in each round, and everyone begin a round in turn.
   *
   * @param {string} scenario
   * @param {readonly import('./contestants/index.mjs').Contestant[]} everyone
   * @param {(contestant: import('./contestants/index.mjs').Contestant, round: number) => Promise<Record<string, number>>} measure
   * @returns {Promise<{ order: string[], values: Record<string, Record<string, number> | { failed: string }> }[]>}
   */
  async eachRound(scenario, everyone, measure, { rounds = this.rounds } = {}) {
    const results = [];
    for (let round = 0; round < rounds; round++) {
      const order = rotated(everyone, round);
      const values = {};
      for (const one of order) values[one.name] = await this.attempt(scenario, one, () => measure(one, round));
      results.push({ order: order.map(({ name }) => name), values });
      this.say(`  round ${round + 1} of ${rounds}`);
    }
    return results;
  }

  /** Reports a contestant that fails, and continues with the others. */
  async attempt(scenario, { name, label, fleet = name }, measure) {
    try {
      return await measure();
    } catch (error) {
      const failed = error.message.split('\n')[0];
      if (fleet.split(':')[0] === OURS) this.failures.push(`${scenario}: ${error.message}`);
      this.say(`  ${label}: ${error.message}`);
      await this.fleets.drop(fleet);
      return { failed };
    }
  }

  /**
   * The setting of a contestant with which it does most. All are tried once for a scenario, which also warms it up.
   *
   * @param {(tuning: object) => Promise<number>} measure leases per second
   */
  async tune(scenario, one, measure) {
    const tried = [];
    for (const tuning of one.tunings.slice(0, this.count(one.tunings.length, 1))) {
      const result = await this.attempt(scenario, one, async () => ({ leasesPerSecond: await measure(tuning) }));
      tried.push({ tuning, ...result });
    }
    const [best] = tried.toSorted((a, b) => (b.leasesPerSecond ?? 0) - (a.leasesPerSecond ?? 0));
    this.#tunings.set(`${scenario} ${one.name}`, best.tuning);
    return tried;
  }

  /** The tuning that `tune` chose. */
  tuningOf(scenario, { name, tunings }) {
    return this.#tunings.get(`${scenario} ${name}`) ?? tunings[0];
  }
}
