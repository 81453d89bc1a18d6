// @ts-check
import { ShopProcess } from './shop-process.mjs';

/** Options of an instance. */
/** @typedef {{ name: string, clockSkewMs?: number, env?: Record<string, string> }} InstanceSpec */

/** Several instances of the shop on one Redis. */
export class Fleet {
  /** @type {ShopProcess[]} */
  shops = [];
  #specs;
  #env;

  /**
   * @param {InstanceSpec[]} specs
   * @param {Record<string, string>} env for all of them
   */
  constructor(specs, env) {
    this.#specs = specs;
    this.#env = env;
  }

  async start() {
    const started = await Promise.allSettled(this.#specs.map((spec) => this.#startOne(spec)));
    this.shops = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    for (const result of started) if (result.status === 'rejected') throw result.reason;
  }

  /** Puts a new process in the place of one that died. */
  async replace(/** @type {ShopProcess} */ dead) {
    const index = this.shops.indexOf(dead);
    const spec = this.#specs[index];
    if (spec) this.shops[index] = await this.#startOne(spec);
  }

  /**
   * Runs something while more instances run, and stops those afterwards.
   *
   * @template T
   * @param {InstanceSpec[]} specs
   * @param {() => Promise<T>} work
   */
  async withMore(specs, work) {
    const joined = await Promise.all(specs.map((spec) => this.#startOne(spec)));
    this.shops.push(...joined);
    try {
      return await work();
    } finally {
      this.shops = this.shops.filter((shop) => !joined.includes(shop));
      await Promise.all(joined.map((shop) => shop.stop()));
    }
  }

  get running() {
    return this.shops.filter((shop) => shop.isRunning);
  }

  named(/** @type {string} */ name) {
    return this.running.find((shop) => shop.name === name);
  }

  /** As a load balancer would: the first, the second, ..., the first. */
  byTurns(/** @type {number} */ request) {
    const { running } = this;
    const shop = running[request % running.length];
    if (!shop) throw new Error('No instance is left');
    return shop;
  }

  /** Any running instance, not counting some. */
  other(/** @type {ShopProcess[]} */ ...not) {
    const found = this.running.find((shop) => !not.includes(shop));
    if (!found) throw new Error('No instance is left');
    return found;
  }

  async kill() {
    await Promise.all(this.shops.map((shop) => shop.kill()));
  }

  async [Symbol.asyncDispose]() {
    await this.kill();
  }

  #startOne(/** @type {InstanceSpec} */ { name, clockSkewMs = 0, env = {} }) {
    return ShopProcess.start(name, { ...this.#env, ...env, CLOCK_SKEW_MS: String(clockSkewMs) });
  }
}
