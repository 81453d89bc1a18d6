import type { ClaimEnd, Tick, TickClaim, TickReply } from '../../../lib/features/jobs/core/job-claims.js';
import type { JobClaims } from '../../../lib/features/jobs/core/job-store.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockClientOptions } from '../../../lib/kernel/wire.js';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import type { SingletonRunOptions } from '../../../lib/features/jobs/core/singleton-run-options.js';
import type { SingletonRuns } from '../../../lib/features/jobs/core/singleton-runs.js';
import { type Instance, LockWorld } from './lock-world.js';
import { answered, type Fate, lostOnTheWay } from './scripted-store.js';
import { forgetful, jobsOn } from './forgetful.js';
import { track, type Tracked } from '../expect/tracked.js';

type TickVerb = 'claim' | 'finish' | 'giveBack';

/** The claims of a job store, in front of others: the test decides what becomes of each command. */
export class ScriptedLedger implements JobClaims {
  readonly claims: { readonly claim: TickClaim; readonly sentAt: number }[] = [];
  readonly finishes: LockOwner[] = [];
  readonly returns: LockOwner[] = [];
  readonly fates: Record<TickVerb, Fate> = { claim: answered, finish: answered, giveBack: answered };
  readonly #next: Record<TickVerb, Fate[]> = { claim: [], finish: [], giveBack: [] };

  constructor(
    private readonly inner: JobClaims,
    private readonly now: () => number,
  ) {}

  /** Sets the fates of the next commands of a kind, in order; they precede `fates`. */
  next(verb: TickVerb, ...fates: Fate[]): void {
    this.#next[verb].push(...fates);
  }

  claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
    this.claims.push({ claim, sentAt: this.now() });
    return (this.#next.claim.shift() ?? this.fates.claim)(() => this.inner.claim(tick, claim));
  }

  end(owner: LockOwner, ended: { readonly claim?: ClaimEnd }): Promise<boolean> {
    const verb = ended.claim?.to === 'finished' ? 'finish' : 'giveBack';
    (verb === 'finish' ? this.finishes : this.returns).push(owner);
    return (this.#next[verb].shift() ?? this.fates[verb])(() => this.inner.end(owner, ended));
  }
}

/** One run of a tick, as the fleet saw it. `endedAt`: undefined as long as it runs, and when its process died. */
export interface Run {
  readonly tick: string;
  readonly on: string;
  readonly startedAt: number;
  readonly fencingToken: number;
  endedAt?: number;
}

/** One process of the fleet, and what its scheduler calls. */
export class Member {
  readonly tickStore: ScriptedLedger;
  readonly singletons: SingletonRuns;
  isDead = false;

  constructor(
    readonly name: string,
    readonly instance: Instance,
    private readonly fleet: Fleet,
  ) {
    const { clock, server } = fleet.world;
    this.tickStore = new ScriptedLedger(jobsOn(server), () => clock.now());
    this.singletons = instance.locks.jobs.runs(forgetful(this.tickStore));
  }

  /** The scheduler fires a tick of the fleet's job, which takes `lastingMs`. */
  fire(tick: string, lastingMs = 5, changes: Partial<SingletonRunOptions> = {}): Tracked<string | undefined> {
    return this.run(tick, (lease) => this.fleet.work(this, tick, lease, lastingMs), changes);
  }

  run<T>(
    tick: string,
    work: (lease: Lease) => Promise<T>,
    changes: Partial<SingletonRunOptions> = {},
  ): Tracked<T | undefined> {
    return track(this.singletons.run({ ...this.fleet.job, tick, ...changes }, work));
  }

  /** SIGKILL: drops everything that it sends from now on. */
  kill(): void {
    this.isDead = true;
    this.instance.store.all(lostOnTheWay);
    this.tickStore.fates.claim = lostOnTheWay;
    this.tickStore.fates.finish = lostOnTheWay;
    this.tickStore.fates.giveBack = lostOnTheWay;
  }
}

export const LEASE_MS = 9_000;
export const WAIT_MS = 3_000;

/** Instances that share one singleton job, on one in-memory server with one clock that the test moves. */
export class Fleet {
  readonly world = new LockWorld();
  readonly clock = this.world.clock;
  readonly runs: Run[] = [];
  readonly job: Omit<SingletonRunOptions, 'tick'>;

  constructor(changes: Partial<SingletonRunOptions> = {}) {
    const lock = { leaseMs: LEASE_MS, waitMs: WAIT_MS };
    this.job = { job: 'report', overlap: 'skip', onCrash: 'skip', claimTtlMs: 600_000, lock, ...changes };
  }

  member(name: string, options?: Partial<LockClientOptions>): Member {
    return new Member(name, this.world.instance(name, options), this);
  }

  members(...names: string[]): Member[] {
    return names.map((name) => this.member(name));
  }

  runsOf(tick: string): Run[] {
    return this.runs.filter((run) => run.tick === tick);
  }

  /** The holder of the job's lock; `undefined` if it is free. */
  get holder(): string | undefined {
    return this.world.server.members(`cron:${this.job.job}`)[0]?.owner.split('/')[0];
  }

  async work(member: Member, tick: string, lease: Lease, lastingMs: number): Promise<string> {
    const { clock } = this;
    const run: Run = { tick, on: member.name, startedAt: clock.now(), fencingToken: lease.fencingToken };
    this.runs.push(run);
    await new Promise<void>((resolve) => clock.setTimer(resolve, lastingMs));
    // A dead process ends nothing.
    if (member.isDead) return new Promise<never>(() => {});
    run.endedAt = clock.now();
    return `${tick} by ${member.name}`;
  }
}
