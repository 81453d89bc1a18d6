import { JOB_PREFIX, jobResource } from '../../../kernel/api/resource.js';
import type { LockEventOf } from '../../../kernel/events/events.js';
import type { Runtime } from '../../../kernel/holding/runtime.js';
import { ask } from '../../../kernel/store/ask.js';
import type { OperatorRequest } from '../../../kernel/store/message-health.js';
import type { JobStore, OperatorRequestChange } from './job-store.js';

/** The TTL of a request that no instance takes. */
const ASKED_KEEP_MS = 10_000;
/** The TTL of a request that an instance has taken: as long as a run may take. */
const TAKEN_KEEP_MS = 24 * 60 * 60_000;
const ENDED_KEEP_MS = 60 * 60_000;
/** A program that may publish must not keep this process busy, so it looks at so few messages. */
const LOOKS_PER_SECOND = 20;

export type Operator = Pick<LockEventOf<'jobCommand'>, 'by' | 'reason'>;

/**
 * The outcome of a requested run. `refused`: it did not begin. `message`: the reason, and for an error of the job only
 * its name, because Redis must not store more of it.
 */
export interface AskedEnding {
  readonly outcome: 'ok' | 'error' | 'refused';
  readonly message?: string;
}

/** The state of a request to run a job. `gone`: no instance has taken it, and none will. */
type RunRequestState =
  | { readonly state: 'asked' }
  | { readonly state: 'taken'; readonly instanceId: string }
  | ({ readonly state: 'ended'; readonly instanceId: string } & AskedEnding)
  | { readonly state: 'gone' };

/** The stored form of a request. Another program may have written it. */
type Told = Readonly<Record<string, unknown>>;

interface JobRunner {
  has(job: string): boolean;
  /** @param id part of the text of its tick. Never rejects */
  run(job: string, operator: Operator, id: string): Promise<AskedEnding>;
}

/** A request of this process. */
interface AskedRun extends OperatorRequest {
  /** In the text of the tick of the run. */
  readonly tickId: string;
  /** Its stored text until it is taken. */
  readonly text: string;
}

/**
 * Passes requests of operators in other processes to the instances: to run a job now, which one instance that has the
 * job takes, and to report that a lease was ended. A message names the request, which is read from the store: so a
 * program that may only publish runs nothing, and reports nothing.
 */
export class OperatorRequests {
  #runner: JobRunner | undefined;
  #looks = { since: -Infinity, count: 0 };

  constructor(
    private readonly runtime: Runtime,
    private readonly store: JobStore,
  ) {}

  serve(runner: JobRunner): void {
    this.#runner = runner;
  }

  asked(request: OperatorRequest): void {
    const { clock, closing } = this.runtime;
    if (closing.aborted) return;
    const now = clock.now();
    if (now - this.#looks.since >= 1_000) this.#looks = { since: now, count: 0 };
    if (++this.#looks.count > LOOKS_PER_SECOND) return;
    // If Redis does not answer, the asking process finds no instance and reports that.
    this.#look(request).catch(() => {});
  }

  async #look(request: OperatorRequest): Promise<void> {
    const text = await this.#change(request, {});
    const told = parse(text);
    if (told['state'] === 'released') return this.#note(request, text, told);
    const { resource } = request;
    const job = resource.slice(JOB_PREFIX.length);
    if (told['state'] !== 'asked' || !resource.startsWith(JOB_PREFIX) || !this.#runner?.has(job)) return;
    await this.#take(request, text, told, job, this.#runner);
  }

  /** One instance logs the action of a program without a log. */
  async #note(request: OperatorRequest, text: string, { fencingToken, holder, ...told }: Told): Promise<void> {
    const { observers } = this.runtime;
    // A process without a log leaves it to others; the command line is one.
    if (!Number.isSafeInteger(fencingToken) || !observers.wants('forceReleased')) return;
    const noted = this.#own('noted');
    if ((await this.#change(request, { from: text, to: noted, ttlMs: ASKED_KEEP_MS })) !== noted) return;
    observers.forceReleased(request.resource, {
      fencingToken: fencingToken as number,
      ...(typeof holder === 'string' && { holder }),
      ...operatorIn(told),
    });
  }

  /** Notifies the instances that an operator has ended the lease of a holder here. One of them reports it as `forceReleased`. */
  async tellReleased(
    resource: string,
    ended: Operator & { readonly fencingToken: number; readonly holder: string },
  ): Promise<OperatorRequest> {
    const request = { resource, id: this.runtime.random.id() };
    const to = JSON.stringify({ state: 'released', ...ended });
    await this.#change(request, { to, ttlMs: ASKED_KEEP_MS, tells: true });
    return request;
  }

  async notedBy(request: OperatorRequest): Promise<string | undefined> {
    const { state, instanceId } = parse(await this.#change(request, {}));
    return state === 'noted' && typeof instanceId === 'string' ? instanceId : undefined;
  }

  async #take(request: OperatorRequest, text: string, told: Told, job: string, runner: JobRunner): Promise<void> {
    const { instanceId } = this.runtime.store;
    const taken = this.#own('taken');
    let ending: AskedEnding = {
      outcome: 'refused',
      message: 'Redis did not answer the instance that accepted the request.',
    };
    try {
      if ((await this.#change(request, { from: text, to: taken, ttlMs: TAKEN_KEEP_MS })) !== taken) return;
      ending = await runner.run(job, operatorIn(told), tickIdOf(request));
    } finally {
      const ended = JSON.stringify({ state: 'ended', instanceId, ...ending });
      await this.#change(request, { from: taken, to: ended, ttlMs: ENDED_KEEP_MS });
    }
  }

  /** The state of a request that this instance takes. No other instance writes the same. */
  #own(state: 'taken' | 'noted'): string {
    const { random, store } = this.runtime;
    return JSON.stringify({ state, instanceId: store.instanceId, nonce: random.id() });
  }

  /** A request that is not sent yet. */
  create(job: string, operator: Operator): AskedRun {
    const request = { resource: jobResource(job), id: this.runtime.random.id() };
    return { ...request, tickId: tickIdOf(request), text: JSON.stringify({ state: 'asked', ...operator }) };
  }

  /** Sends a request, or notifies the instances of it once more. */
  async tell({ text, ...request }: AskedRun): Promise<RunRequestState> {
    return readState(await this.#change(request, { to: text, ttlMs: ASKED_KEEP_MS, tells: true }));
  }

  async read(request: OperatorRequest): Promise<RunRequestState> {
    return readState(await this.#change(request, {}));
  }

  /** Takes a request back, unless an instance has taken it. */
  async withdraw({ text, ...request }: AskedRun): Promise<RunRequestState> {
    const withdrawn = { from: text, to: JSON.stringify({ state: 'gone' }), ttlMs: ASKED_KEEP_MS };
    return readState(await this.#change(request, withdrawn));
  }

  async #change(request: OperatorRequest, change: OperatorRequestChange): Promise<string> {
    const { resource, id } = request;
    const send = async (): Promise<string> => (await this.store.request?.({ resource, id }, change)) ?? '';
    return ask(this.runtime, send, 'pass on the request for', resource);
  }
}

function tickIdOf({ id }: OperatorRequest): string {
  return id.slice(0, 8);
}

/** Returns the requester and the reason. Text of another program may be too long for a log. */
function operatorIn({ by, reason }: Told): Operator {
  return {
    ...(typeof by === 'string' && { by: by.slice(0, 100) }),
    ...(typeof reason === 'string' && { reason: reason.slice(0, 200) }),
  };
}

function readState(text: string): RunRequestState {
  const { state, instanceId: instance, outcome, message } = parse(text);
  const instanceId = typeof instance === 'string' ? instance : '';
  if (state === 'asked') return { state };
  if (state === 'taken') return { state, instanceId };
  if (state !== 'ended' || (outcome !== 'ok' && outcome !== 'error' && outcome !== 'refused')) return { state: 'gone' };
  return { state, instanceId, outcome, ...(typeof message === 'string' && { message }) };
}

/** Text of another program counts as none. */
function parse(text: string): Told {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {};
  } catch {
    return {};
  }
}
