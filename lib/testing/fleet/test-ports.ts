import type {
  JobPause,
  JobRegistration,
  JobState,
  JobStore,
  MissedReply,
  MissedNote,
  RunEnd,
} from '../../core/store/job-store.js';
import type { LatchListener, LatchSpec, LatchState, LatchStore } from '../../core/store/latch-store.js';
import type { LockOwner } from '../../core/store/lock-store.js';
import type { LockStoreError } from '../../core/store/store-error.js';
import type { Tick, TickClaim, TickReply, TickStore } from '../../core/store/tick-store.js';
import type { CommandPath } from './commands.js';

/** The tick store of one instance of a fleet. */
export class TestTickStore implements TickStore {
  constructor(
    private readonly inner: TickStore,
    private readonly path: CommandPath,
  ) {}

  claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
    const { resource } = tick;
    return this.path.send({ verb: 'claim', resource, owner: claim.owner.id }, () => this.inner.claim(tick, claim));
  }

  finish(tick: Tick, owner: LockOwner, keepMs: number): Promise<void> {
    const { resource } = tick;
    return this.path.send({ verb: 'finish', resource, owner: owner.id }, () => this.inner.finish(tick, owner, keepMs));
  }

  giveBack(tick: Tick, owner: LockOwner, keepMs: number): Promise<void> {
    const { resource } = tick;
    const execute = () => this.inner.giveBack(tick, owner, keepMs);
    return this.path.send({ verb: 'giveBack', resource, owner: owner.id }, execute);
  }
}

/** What is remembered of jobs, for one instance of a fleet. */
export class TestJobStore implements JobStore {
  constructor(
    private readonly inner: JobStore,
    private readonly path: CommandPath,
  ) {}

  /** It releases the lock of the job. */
  end(run: RunEnd): Promise<boolean> {
    const { resource, id: owner } = run.owner;
    return this.path.send({ verb: 'release', resource, owner }, () => this.inner.end(run));
  }

  noteMissed(missed: MissedNote): Promise<MissedReply> {
    return this.#send(missed.resource, () => this.inner.noteMissed(missed));
  }

  look(resources: readonly string[], limit: number, instances?: number): Promise<JobState[]> {
    return this.#send(resources.join(), () => this.inner.look(resources, limit, instances));
  }

  pause(resource: string, pause: Omit<JobPause, 'at'>): Promise<JobPause | undefined> {
    return this.#send(resource, () => this.inner.pause(resource, pause));
  }

  resume(resource: string): Promise<JobPause | undefined> {
    return this.#send(resource, () => this.inner.resume(resource));
  }

  register(jobs: readonly JobRegistration[]): Promise<JobState[]> {
    return this.#send(jobs.map(({ resource }) => resource).join(), () => this.inner.register(jobs));
  }

  list(): Promise<string[]> {
    return this.#send('', () => this.inner.list());
  }

  #send<T>(resource: string, execute: () => Promise<T>): Promise<T> {
    return this.path.send({ verb: 'job', resource }, execute);
  }
}

/** The latches of one instance of a fleet. */
export class TestLatchStore implements LatchStore {
  constructor(
    private readonly inner: LatchStore,
    private readonly path: CommandPath,
  ) {}

  countDown(spec: LatchSpec, id: string): Promise<LatchState> {
    return this.#send(spec, () => this.inner.countDown(spec, id));
  }

  wait(spec: LatchSpec, placeMs: number): Promise<LatchState> {
    return this.#send(spec, () => this.inner.wait(spec, placeMs));
  }

  read(spec: LatchSpec): Promise<LatchState> {
    return this.#send(spec, () => this.inner.read(spec));
  }

  trouble(name: string): LockStoreError | undefined {
    return this.path.trouble() ?? this.inner.trouble(name);
  }

  listen(listener: LatchListener): void {
    const { path } = this;
    path.onReconnected(() => listener.reconnected());
    this.inner.listen({
      opened: (name, count) => path.deliver(name, () => listener.opened(name, count)),
      reconnected: () => listener.reconnected(),
    });
  }

  #send<T>({ name }: LatchSpec, execute: () => Promise<T>): Promise<T> {
    return this.path.send({ verb: 'latch', resource: name }, execute);
  }
}
