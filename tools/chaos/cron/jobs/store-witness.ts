import type {
  JobStore,
  JobRegistration,
  MissedReply,
  MissedNote,
  RunEnd,
} from '../../../../lib/features/jobs/core/job-store.js';
import { instanceOf } from '../../../../lib/kernel/store/ask.js';
import type { Tick, TickClaim, TickReply } from '../../../../lib/features/jobs/core/job-claims.js';
import type { MemoryServer } from '../../../../lib/memory/memory-server.js';
import type { Omission } from '../../checkers/ticks/missed-ticks.js';
import { EverySoOften, type RememberedJob } from './simulated-record.js';
import { type SeenRun, WitnessedJob } from './witnessed-job.js';
import { type JobState, catchUpTick } from '../../../../lib/features/jobs/core/job-state.js';

type Granted = Extract<TickReply, { status: 'granted' }>;
type Noted = Extract<MissedReply, { status: 'noted' }>;

/**
 * Watches the store: sees each command when it is executed, keeps its own records of the jobs, and reports where the
 * store deviates from them.
 */
export class StoreWitness {
  readonly violations: Omission[] = [];
  readonly counts = {
    granted: 0,
    catchUps: 0,
    manual: 0,
    told: 0,
    tellings: 0,
    paused: 0,
    gaps: 0,
    returned: 0,
    returnedRuns: 0,
    takenBack: 0,
    toldAgain: 0,
  };
  /** In which life of the data a run was granted, by its token. */
  readonly lifeOf = new Map<number, number>();
  /** The outcome that the store recorded for a run, by its token. */
  readonly endOf = new Map<number, RunEnd['outcome']>();
  readonly #jobs: ReadonlyMap<string, WitnessedJob>;
  #life = 0;

  constructor(
    private readonly server: MemoryServer,
    jobs: readonly RememberedJob[],
  ) {
    const witnessed = jobs.map((job) => new WitnessedJob(job));
    this.#jobs = new Map(witnessed.map((job) => [job.resource, job]));
  }

  /** Redis has started without its data. */
  dataIsLost(): void {
    this.#life++;
    for (const [resource, { job }] of this.#jobs)
      (this.#jobs as Map<string, WitnessedJob>).set(resource, new WitnessedJob(job));
  }

  jobStore(inner: JobStore, instance: string): JobStore {
    return {
      claim: async (tick, claim) => {
        const job = this.#job(tick.resource);
        const reply = await inner.claim(tick, claim);
        this.#claimed(job, tick, claim, reply);
        this.#checkLast(job, `the claim of ${tick.tick}, ${reply.status}`);
        return reply;
      },
      end: async (owner, ended, lazily) => {
        const job = this.#job(owner.resource);
        const wasHeld = await inner.end(owner, ended, lazily);
        const { claim, run } = ended;
        if (claim?.to === 'finished') job.finish(claim.tick, owner.id);
        if (claim?.to === 'returned') {
          this.#checkLast(job, `${claim.tick} was given back`);
          if (job.openRun(claim.tick, owner.id)) this.counts.returnedRuns++;
          if (job.giveBack(claim.tick, owner.id, this.#now + claim.claimTtlMs)) this.counts.returned++;
        }
        if (run) {
          this.#checkLast(job, 'the end of a run');
          this.#ended(job, run);
        }
        return wasHeld;
      },
      note: async (missed) => {
        const job = this.#job(missed.resource);
        const reply = await inner.note(missed);
        if (reply.status === 'noted') this.#noted(job, missed, reply, instance);
        this.#checkOwed(job, reply.owed);
        this.#checkLast(job, `missed ticks, ${reply.status}`);
        return reply;
      },
      look: (...args) => inner.look(...args),
      pause: async (resource, pause) => {
        const job = this.#job(resource);
        const standing = await inner.pause(resource, pause);
        const now = this.#now;
        const at = job.isPaused(now) ? job.pauses.pop()!.at : now;
        job.pauses.push({ at, end: pause.until ?? Infinity });
        this.#checkLast(job, 'a pause');
        return standing;
      },
      resume: async (resource) => {
        const job = this.#job(resource);
        const standing = await inner.resume(resource);
        const now = this.#now;
        if (job.isPaused(now)) {
          if (job.schedule) job.beginsAt(now);
          job.endPause(now);
        }
        this.#checkLast(job, 'a resume');
        return standing;
      },
      register: async (registrations) => {
        for (const { resource } of registrations) this.#job(resource);
        const states = await inner.register(registrations);
        registrations.forEach((registration, index) => {
          const job = this.#registered(registration);
          this.#checkLast(job, 'a registration');
          this.#checkOwed(job, states[index]!.owed);
        });
        return states;
      },
      list: () => inner.list(),
    };
  }

  /** Compares all that the store says of the jobs with the books. */
  async checkHistory(store: JobStore): Promise<void> {
    const jobs = [...this.#jobs.keys()].map((resource) => this.#job(resource));
    const states = await store.look([...this.#jobs.keys()], 1_000);
    for (const [index, job] of jobs.entries()) {
      const state = states[index]!;
      if (!state.isKnown && job.runs.length > 0) this.#tell(job, 'history', 'it is not known');
      const holder = this.server.members(job.resource)[0]?.fencingToken;
      const expected = job.runs
        .map(inOrder)
        .map((run) =>
          run.outcome === undefined && run.fencingToken !== holder ? { ...run, outcome: 'crashed' as const } : run,
        );
      const differs = expected.findIndex(
        (run, at) => JSON.stringify(run) !== JSON.stringify(state.runs[at] && inOrder(state.runs[at])),
      );
      if (differs >= 0 || state.runs.length !== expected.length) {
        const at = differs >= 0 ? differs : expected.length;
        const [is, should] = [state.runs, expected].map((runs) => JSON.stringify(runs[at]));
        this.#tell(job, 'history', `entry ${at} is ${is}, and not ${should}`);
      }
      const running = expected.find(({ outcome }) => outcome === undefined);
      if (running?.fencingToken !== state.running?.fencingToken) this.#tell(job, 'history', 'another run is running');
      this.#same(job, 'missed count', state.missed, job.missedCount);
      this.#same(job, 'last success', state.lastSuccessAt, job.lastSuccessAt);
      this.#same(job, 'pause', state.pause !== undefined, job.isPaused(this.#now));
      this.#checkOwed(job, state.owed);
    }
  }

  /** Checks that all ticks due until then are accounted for, and that all owed runs have happened. */
  checkEnd(until: number): void {
    for (const job of this.#jobs.values()) {
      if (job.schedule === undefined || job.isPaused(this.#now)) continue;
      const untold = job.schedule.ticks(job.through ?? 0, until);
      if (untold.length > 0) this.#tell(job, 'not told', `${untold.length} ticks from ${iso(untold[0]!)}`);
      if ((this.#debtOf(job)?.since ?? Infinity) < until)
        this.#tell(job, 'catch-up', `the run for ${iso(job.debt!.last)} is still owed`);
    }
  }

  get #now(): number {
    return this.server.clock.wallNow();
  }

  #isKnown(resource: string): boolean {
    const { redis, keys } = this.server;
    return redis.exists(keys.jobRecord(resource)) === 1;
  }

  /** A field of its record. */
  #field(resource: string, name: string): string | undefined {
    const { redis, keys } = this.server;
    return redis.hget(keys.jobRecord(resource), name);
  }

  /**
   * The current record of a job; a new one if the store may have forgotten it. A manual run has a history, and no
   * record before a start or a tick.
   */
  #job(resource: string): WitnessedJob {
    const job = this.#jobs.get(resource)!;
    if (this.#isKnown(resource)) return job;
    Object.assign(job, {
      schedule: undefined,
      missedCount: 0,
      lastTelling: '',
      debt: undefined,
      lastSuccessAt: undefined,
    });
    const { redis, keys } = this.server;
    if (redis.exists(keys.jobRuns(resource)) === 0) job.runs = [];
    return job;
  }

  #tell(job: WitnessedJob, rule: string, what: string): void {
    this.violations.push({ rule, what: `${job.job.name} at ${iso(this.#now)}: ${what}` });
  }

  #same(job: WitnessedJob, what: string, is: unknown, should: unknown): void {
    if (is !== should) this.#tell(job, 'history', `${what} is ${String(is)}, and not ${String(should)}`);
  }

  #checkLast(job: WitnessedJob, after: string): void {
    const { redis, keys } = this.server;
    const last = Number(redis.get(keys.lastTick(job.resource)) ?? NaN);
    if (Number.isNaN(last) || job.through === undefined || last === job.through) return;
    this.#tell(job, 'last tick', `after ${after}: ${iso(last)}, and not ${iso(job.through)}`);
    job.through = last;
  }

  #debtOf(job: WitnessedJob): WitnessedJob['debt'] {
    return job.debt && job.debt.until >= this.#now ? job.debt : undefined;
  }

  #checkOwed(job: WitnessedJob, owed: MissedReply['owed']): void {
    const debt = this.#debtOf(job);
    const [is, should] = [owed?.tick, debt && catchUpTick(debt.last)];
    if (is !== should || owed?.count !== debt?.count || owed?.first !== debt?.first) {
      this.#tell(job, 'catch-up', `${JSON.stringify(owed)} is owed, and not ${JSON.stringify(debt)}`);
      job.debt = owed && { ...owed, since: this.#now };
    }
  }

  #claimed(job: WitnessedJob, { tick }: Tick, { owner, due, note }: TickClaim, reply: TickReply): void {
    const kind = note!.kind;
    const known = job.runs.find(
      ({ fencingToken }) => reply.status === 'granted' && fencingToken === reply.fencingToken,
    );
    const isNew = reply.status === 'granted' && !known && !this.lifeOf.has(reply.fencingToken);
    const accounts = isNew || ['claimed', 'overlap', 'paused'].includes(reply.status);
    if (reply.status === 'gap') this.counts.gaps++;
    if (due && accounts) this.#account(job, tick, due.at, note!, reply);
    if (reply.status === 'paused') {
      this.counts.paused++;
      if (!job.isPaused(this.#now)) this.#tell(job, 'paused', `${tick} is refused, and the job is not paused`);
    }
    this.#checkReturned(job, tick, reply);
    job.answered(tick, owner.id, reply);
    // It was granted before, and never will be again.
    if (reply.status === 'paused' || reply.status === 'overlap') job.dropUnbegun(tick, owner.id);
    if (!isNew) return;
    this.lifeOf.set(reply.fencingToken, this.#life);
    this.counts.granted++;
    if (kind === 'manual') this.counts.manual++;
    else if (job.isPaused(this.#now)) this.#tell(job, 'paused', `${tick} is granted to ${instanceOf(owner.id)}`);
    const unbegun = job.openRun(tick, owner.id);
    if (kind === 'catchUp') this.#caughtUp(job, tick, reply, unbegun);
    if (unbegun) job.drop(unbegun);
    const marks = { rerun: reply.attempt > 1, manual: kind === 'manual', catchUp: kind === 'catchUp' };
    const { fencingToken } = reply;
    const instanceId = instanceOf(owner.id);
    job.add(seenRun({ tick, startedAt: this.#now, instanceId, ...marks, fencingToken, owner: owner.id }));
  }

  /** Checks that any instance may claim a tick that was given back, as if it never had an owner. */
  #checkReturned(job: WitnessedJob, tick: string, reply: TickReply): void {
    const returned = job.returned(tick, this.#now);
    if (!returned) return;
    const { status } = reply;
    if (status === 'granted') this.counts.takenBack++;
    const isRefused = status === 'finished' || status === 'taken' || status === 'late';
    if (!isRefused && !(status === 'granted' && reply.attempt > 1 !== returned.hasBegun)) return;
    this.#tell(job, 'given back', `${tick} was given back, and is ${JSON.stringify(reply)}`);
  }

  /** Checks that the tick may be claimed, and that no earlier one is passed over. */
  #account(job: WitnessedJob, tick: string, at: number, note: TickClaim['note'], { status }: TickReply): void {
    if (job.missed.has(at)) this.#tell(job, 'missed and granted', `${tick} was told as missed, and is ${status}`);
    if (job.claimed.has(at)) return;
    // A job that is paused when it becomes known again is refused the tick before, too.
    const isRefused = status === 'paused' && job.isPausedSince(at, this.#now);
    if (job.wasPausedAt(at) && at <= (job.through ?? 0) && !isRefused) {
      this.#tell(job, 'paused', `${tick} was due during a pause, and is ${status} after it`);
    }
    job.claimed.add(at);
    const isOther = job.schedule?.text !== note!.schedule;
    if (!isOther && job.through !== undefined) {
      const passed = job.schedule!.ticks(job.through, at - 1).length;
      if (passed > 0) this.#tell(job, 'not told', `${passed} ticks before ${tick}`);
    }
    job.beginsAt(at);
    // Otherwise, instances with the other one may still come to its ticks.
    if (isOther && this.#field(job.resource, 'schedule') === note!.schedule) {
      job.schedule = scheduleOf(note!.schedule!);
      job.debt = undefined;
    }
  }

  #caughtUp(job: WitnessedJob, tick: string, { attempt, missed }: Granted, unbegun: SeenRun | undefined): void {
    const debt = this.#debtOf(job);
    if (debt) {
      this.counts.catchUps++;
      job.paid = debt;
      job.debt = undefined;
    } else if (attempt === 1 && !unbegun) this.#tell(job, 'catch-up', `${tick} is granted, and not owed`);
    const { count, first, last } = job.paid ?? {};
    if (missed?.count !== count || missed?.first !== first || missed?.last !== last) {
      this.#tell(job, 'catch-up', `${tick} is for ${JSON.stringify(missed)}, and not ${JSON.stringify(job.paid)}`);
    }
  }

  #ended(job: WitnessedJob, { fencingToken, outcome, errorName, errorCode }: RunEnd): void {
    if (this.endOf.has(fencingToken)) return;
    this.endOf.set(fencingToken, outcome);
    if (this.lifeOf.get(fencingToken) !== this.#life) return;
    const now = this.#now;
    if (outcome === 'ok' && this.#isKnown(job.resource)) job.lastSuccessAt = now;
    const index = job.runs.findIndex((run) => run.fencingToken === fencingToken);
    const run = job.runs[index];
    if (!run) return;
    if (outcome === 'none') job.drop(run);
    else {
      const error = { ...(errorName && { errorName }), ...(errorCode && { errorCode }) };
      job.runs[index] = seenRun({ ...run, endedAt: now, outcome, ...error });
    }
  }

  #noted(job: WitnessedJob, missed: MissedNote, reply: Noted, instance: string): void {
    const now = this.#now;
    const newest = missed.ticks.at(-1)!;
    if (job.schedule?.text !== missed.schedule) return this.#tell(job, 'told wrongly', 'another schedule');
    const all = job.schedule.ticks(missed.after, newest);
    const telling = `${instance} ${missed.after} ${newest}`;
    // Its answer was lost.
    if (missed.after !== job.through && telling === job.lastTelling) return void this.counts.toldAgain++;
    job.lastTelling = telling;
    if (missed.after !== job.through) this.#tell(job, 'told wrongly', `after ${iso(missed.after)}`);
    job.beginsAt(newest);
    const counted = all.filter((tick) => !job.wasPausedAt(tick));
    for (const tick of counted) {
      if (tick > now) this.#tell(job, 'told early', `${iso(tick)} is not due yet`);
      if (job.missed.has(tick)) this.#tell(job, 'told twice', iso(tick));
      if (job.claimed.has(tick)) this.#tell(job, 'told wrongly', `${iso(tick)} was claimed`);
      job.missed.add(tick);
    }
    const [first, last] = [counted[0], counted.at(-1)];
    const { missed: told } = reply;
    if ((told?.count ?? 0) !== counted.length || told?.first !== first || told?.last !== last) {
      const should = `${counted.length} from ${first && iso(first)} to ${last && iso(last)}`;
      this.#tell(job, 'told wrongly', `${told?.count} from ${told && iso(told.first)}, and not ${should}`);
    }
    if (first === undefined || last === undefined) return;
    this.counts.told += counted.length;
    this.counts.tellings++;
    job.missedCount += counted.length;
    const inHistory = counted.filter((tick) => tick >= missed.ticks[0]!);
    const marks = { rerun: false, manual: false, catchUp: false, outcome: 'missed', owner: '' } as const;
    job.add(...inHistory.map((tick) => seenRun({ tick: iso(tick), startedAt: now, instanceId: instance, ...marks })));
    if (missed.runWithinMs === undefined || last + missed.runWithinMs < now) return;
    const debt = this.#debtOf(job);
    const count = counted.length + (debt?.count ?? 0);
    job.debt = { count, first: debt?.first ?? first, last, until: last + missed.runWithinMs, since: now };
  }

  #registered({ resource, schedule }: JobRegistration): WitnessedJob {
    const job = this.#jobs.get(resource)!;
    if (job.schedule?.text !== schedule || job.through === undefined) {
      job.beginsAt(this.#now);
      job.schedule = scheduleOf(schedule!);
      job.debt = undefined;
    }
    return job;
  }
}

function scheduleOf(text: string): EverySoOften {
  return new EverySoOften(Number(text.split(' ')[1]));
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

/** With its properties in one order, so that texts can be compared. */
function seenRun(run: SeenRun): SeenRun {
  return { owner: run.owner, ...inOrder(run) };
}

function inOrder(run: JobState['runs'][number]) {
  const { tick, startedAt, endedAt, outcome, instanceId, rerun, manual, catchUp, fencingToken, errorName, errorCode } =
    run;
  return { tick, startedAt, endedAt, outcome, instanceId, rerun, manual, catchUp, fencingToken, errorName, errorCode };
}
