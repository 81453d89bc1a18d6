// The worker processes of each contestant. They stay for the whole run: code is warm and connections are open when a
// round begins, and an idle one costs the others nothing.
import { WorkerProcess } from './worker-process.mjs';

export class Fleets {
  #url;
  #fleets = new Map();

  /** @param {string} url of the Redis */
  constructor(url) {
    this.#url = url;
  }

  /** @returns {WorkerProcess[]} the first `size` processes of a contestant */
  of(contestant, size) {
    const fleet = this.#fleets.get(contestant) ?? [];
    this.#fleets.set(contestant, fleet);
    while (fleet.length < size) fleet.push(new WorkerProcess({ contestant, url: this.#url }));
    return fleet.slice(0, size);
  }

  /** After a failure, its processes may still run anything. */
  async drop(contestant) {
    const fleet = this.#fleets.get(contestant) ?? [];
    this.#fleets.delete(contestant);
    for (const worker of fleet) worker.kill();
    await Promise.all(fleet.map(({ exited }) => exited));
  }

  async dropAll() {
    await Promise.all([...this.#fleets.keys()].map((contestant) => this.drop(contestant)));
  }
}
