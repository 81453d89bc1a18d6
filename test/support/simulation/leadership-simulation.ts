import type { Leadership } from '../../../lib/features/leader/core/leadership.js';
import { type Instance, LockWorld } from '../world/lock-world.js';
import { lostOnTheWay } from '../world/scripted-store.js';
import { SeededRandom } from '../world/seeded-random.js';
import { Network, type NetworkOptions, ProcessClock } from './simulated-process.js';

export const LEASE_MS = 3_000;
/** When a waiter asks again at the latest: it keeps its place, and finds a lock that has expired. */
const HEARTBEAT_MS = 1_000 * 1.25;
/** Commands under way, and clocks that run a little too slow. */
const SLACK_MS = 100;
/** The longest that the simulated leaders work. */
export const MAX_WORK_MS = 400;

/** Something that happens to an instance. */
export interface LeadershipIncident {
  readonly at: number;
  readonly on: number;
  /**
   * `kill`: its connections end with it. `vanish`: Redis isn't notified. `stop`: SIGSTOP. `silence`: Redis does not
   * answer it. `release`: the leader gives its term up. `stand`: it campaigns again after a resignation.
   */
  readonly kind: 'resign' | 'stand' | 'release' | 'work' | 'kill' | 'vanish' | 'stop' | 'silence' | 'reconnect';
  readonly lastingMs: number;
}

export interface LeadershipPlan {
  readonly seed: number;
  readonly instances: number;
  readonly network: NetworkOptions;
  readonly incidents: readonly LeadershipIncident[];
}

interface Candidate extends Instance {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly network: Network;
  leadership: Leadership;
  /** The calls of its callbacks, in order. */
  readonly told: string[];
}

/** Several processes that campaign for one resource, while a plan happens to them. */
export class LeadershipSimulation {
  readonly world = new LockWorld();
  readonly #random: SeededRandom;
  readonly #candidates: Candidate[];
  /** All tokens, in the order of the elections. */
  readonly tokens: number[] = [];
  /** Start of the current vacancy, in which there are candidates and no leader. */
  #vacantSince: number | undefined;
  /** The longest vacancy, in which there were candidates and no leader. */
  longestVacancyMs = 0;

  constructor(private readonly plan: LeadershipPlan) {
    this.#random = new SeededRandom(plan.seed);
    this.#candidates = Array.from({ length: plan.instances }, (_, index) => this.#start(`process-${index}`));
    this.world.clock.onStep = () => this.#check();
  }

  /** A dead leader's lease, a heartbeat until that is found, and the work that a leader ends before it goes. */
  static readonly longestVacancyMs = LEASE_MS + HEARTBEAT_MS + MAX_WORK_MS + SLACK_MS;

  /** @throws at the first thing that is wrong */
  async run(): Promise<void> {
    const { clock } = this.world;
    for (const incident of this.plan.incidents) clock.setTimer(() => this.#happens(incident), incident.at);
    await clock.advance(Math.max(0, ...this.plan.incidents.map(({ at }) => at)) + LEASE_MS);
    await this.#allIsWell();
    await this.#allGo();
  }

  /** All live instances are candidates: one of them leads before long, and is the only one. */
  async #allIsWell(): Promise<void> {
    const { clock } = this.world;
    this.#candidates.push(this.#start('substitute'));
    for (const candidate of this.#living()) {
      candidate.network.isHealed = true;
      candidate.store.all(candidate.network.commandFate);
      candidate.clock.continue();
      this.#stand(candidate);
    }
    // Some of the waiters are dead, and may be granted first, one after another.
    await clock.advance((this.plan.instances + 2) * LeadershipSimulation.longestVacancyMs);
    if (this.#leaders().length !== 1) throw new Error('Nobody leads, though somebody stands and all is well');
  }

  /** Nothing is left, in Redis or of timers. */
  async #allGo(): Promise<void> {
    const { clock, server } = this.world;
    for (const { locks } of this.#living()) void locks.shutdown(1_000);
    await clock.advance(12 * LEASE_MS);
    if (!server.isEmpty) throw new Error('Something is left in Redis');
    for (const { told, name } of this.#living()) checkPairs(name, told);
    if (this.tokens.some((token, i) => token <= (this.tokens[i - 1] ?? 0))) throw new Error('The tokens do not grow');
  }

  #start(name: string): Candidate {
    const rate = 1 + (this.#random.fraction() - 0.5) / 60; // less than 1 % off
    const clock = new ProcessClock(this.world.clock, Math.floor(this.#random.fraction() * 1e6), rate);
    const instance = this.world.instance(name, { clock });
    const random = new SeededRandom(Math.floor(this.#random.fraction() * 2 ** 31));
    const network = new Network(this.world.clock, clock, random, this.plan.network);
    network.connect(instance.store);
    const candidate = { ...instance, name, clock, network, told: [] } as unknown as Candidate;
    this.#stand(candidate);
    return candidate;
  }

  #stand(candidate: Candidate): void {
    const { locks, told, clock } = candidate;
    if (locks.leadership('mailer')) return;
    candidate.leadership = locks.campaign('mailer', {
      leaseMs: LEASE_MS,
      onElected: ({ fencingToken }) => {
        if (clock.isDead) return;
        told.push(`elected ${fencingToken}`);
        this.tokens.push(fencingToken);
      },
      onDemoted: (_reason, { fencingToken }) => void told.push(`demoted ${fencingToken}`),
    });
  }

  #happens({ on, kind, lastingMs }: LeadershipIncident): void {
    const candidate = this.#candidates[on % this.#candidates.length]!;
    const { clock, store, network, leadership } = candidate;
    if (!clock.isAwake) return;
    switch (kind) {
      case 'resign':
        void leadership.resign();
        return;
      case 'stand':
        return this.#stand(candidate);
      case 'release':
        leadership.run((term) => term.release()).catch(() => {}); // rejects if the term is lost
        return;
      case 'work':
        leadership
          .run(() => new Promise<void>((end) => void clock.setTimer(end, lastingMs % MAX_WORK_MS)))
          .catch(() => {}); // rejects if the term is lost
        return;
      case 'kill':
      case 'vanish':
        clock.kill();
        if (kind === 'kill') void store.close();
        return;
      case 'stop':
        clock.stop();
        this.world.clock.setTimer(() => {
          clock.continue();
          this.#check(); // before any of its timers runs
        }, lastingMs);
        return;
      case 'silence':
        store.all(lostOnTheWay);
        this.world.clock.setTimer(() => store.all(network.commandFate), lastingMs);
        return;
      case 'reconnect':
        return store.reconnect();
    }
  }

  #living(): Candidate[] {
    return this.#candidates.filter(({ clock }) => !clock.isDead);
  }

  #leaders(): Candidate[] {
    return this.#candidates.filter(({ clock, leadership }) => clock.isAwake && leadership.isLeader());
  }

  #check(): void {
    const leaders = this.#leaders();
    if (leaders.length > 1) throw new Error(`${leaders.map(({ name }) => name).join(' and ')} lead at the same time`);
    for (const { leadership, name } of leaders) {
      if (leadership.signal.aborted) throw new Error(`${name} leads, and its signal has aborted`);
      if (leadership.fencingToken !== this.tokens.at(-1)) throw new Error(`${name} leads with an old token`);
    }
    const now = this.world.clock.now();
    const isWanted = this.#living().some(({ locks }) => locks.leadership('mailer'));
    if (leaders.length === 1 || !isWanted) this.#vacantSince = undefined;
    else this.#vacantSince ??= now;
    this.longestVacancyMs = Math.max(this.longestVacancyMs, now - (this.#vacantSince ?? now));
  }
}

/** Each term begins and ends once, one after another. */
function checkPairs(name: string, told: readonly string[]): void {
  for (let i = 0; i < told.length; i += 2) {
    const token = told[i]!.split(' ')[1];
    if (told[i] !== `elected ${token}` || told[i + 1] !== `demoted ${token}`) {
      throw new Error(`The callbacks of ${name} were told ${told.join(', ')}`);
    }
  }
}
