import { InvalidLockOptionsError } from '../../../../kernel/api/errors.js';
import { cyclesAmong, type NestedWaits } from '../../../../kernel/deadlocks/deadlock-watch.js';
import { ask, instanceOf } from '../../../../kernel/store/ask.js';
import { fencingTickOf } from '../../../../kernel/store/fencing-token.js';
import {
  ANSWERS_KEEP_MS,
  type LeftReport,
  ROLL_CALL_EVERY_MS,
  type RollCall,
  type RollCalls,
  type StandingRollCall,
} from '../../../../kernel/store/message-health.js';
import type { LockState } from '../../../../kernel/store/lock-state.js';
import type { Timer } from '../../../../kernel/util/clock.js';
import { chunks } from '../../../../kernel/util/objects.js';
import { pause, settle } from '../../../../kernel/util/promises.js';
import { readAnswer, writeAnswer } from './answer.js';
import { FLEET_OPTIONS, type FleetAnswer, type FleetOptions, type FleetReport } from './lock-fleet.js';
import { InstanceReport, type OwnSources } from './instance-report.js';
import { lifeOf } from './life.js';
import { Scope } from './scope.js';

/** A roll call about something else ends within a second. Another turn is waited for this often. */
const MAX_TURNS = 10;
/** Messages of other programs may come in between. It is less than an asking process waits. */
const LOOK_EVERY_MS = 250;
/** The first and the longest pause between two looks at how many have answered. */
const LOOK_MS = { first: 5, longest: 40 };
/** So many resources are looked at for holders that no instance has listed, and so many at once. */
const MAX_LOOKS = 100;
const LOOKS_AT_ONCE = 20;
const MAX_SCANNED = 10_000;
/** An instance without roll calls leaves a report so often. Answers are kept for longer than two of these. */
const REPORT_EVERY_MS = 2_000;

/** The first characters of the instance ids of the command line. */
export const OBSERVER_PREFIX = 'cli:';

interface FleetDeps extends OwnSources {
  readonly inspect: (resource: string) => Promise<LockState>;
  readonly scan: (options: {
    readonly prefix: string;
    readonly limit: number;
  }) => Promise<{ readonly states: readonly LockState[]; readonly isCut: boolean }>;
}

/** The answers to one roll call. */
interface Answers {
  readonly call: StandingRollCall;
  readonly instances: readonly FleetAnswer[];
  /** Reports of instances that receive no roll calls: as they were some seconds ago. */
  readonly unasked: readonly FleetAnswer[];
  readonly unreadable: number;
  /** The client ids of all that have answered or left a report, readable or not. */
  readonly heard: ReadonlySet<string>;
  /** When they were read, on the monotonic clock, and within which time before they were given. */
  readonly readAt: number;
  readonly withinMs: number;
}

/** A roll call, and the earliest time at which it may have begun. */
interface BegunRollCall {
  readonly call: StandingRollCall;
  readonly since: number;
}

/** Asks all instances what they hold and wait for, and answers when this one is asked. */
export class FleetView {
  readonly #deps: FleetDeps;
  readonly #own: InstanceReport;
  /** The roll calls of the last second, by what they ask. Calls of this process share them. */
  readonly #shared = new Map<string, { readonly at: number; readonly answers: Promise<Answers> }>();
  #answeredAt = -Infinity;
  /** The last one that came too soon after another one. */
  #next: RollCall | undefined;
  #timer: Timer | undefined;
  #reporting: Timer | undefined;

  constructor(deps: FleetDeps) {
    this.#deps = deps;
    this.#own = new InstanceReport(deps);
  }

  /**
   * Answers the current roll call, at most one a second. A program that may publish must not keep this process busy, so
   * it checks few messages.
   */
  called(call: RollCall): void {
    const { clock, store } = this.#deps;
    if (!store.rollCalls) return;
    const waitMs = this.#answeredAt + LOOK_EVERY_MS - clock.now();
    if (waitMs <= 0) return void this.#answer(call, store.rollCalls);
    this.#next = call;
    const answerNext = (): void => {
      this.#timer = undefined;
      void this.#answer(this.#next!, store.rollCalls!);
    };
    this.#timer ??= clock.setTimer(answerNext, waitMs, { background: true });
  }

  async #answer({ nonce, scope }: RollCall, rollCalls: RollCalls): Promise<void> {
    const { clock } = this.#deps;
    const heardAt = (this.#answeredAt = clock.now());
    await settle();
    const answer = this.#own.read(Scope.read(scope), clock.now() - heardAt);
    // If the store refuses it, the asking process lists this one as silent.
    await rollCalls.answer(nonce, writeAnswer(answer)).catch(() => {});
  }

  /** Leaves a report every two seconds while Redis does not let this instance hear roll calls. */
  unasked(isUnasked: boolean): void {
    const { clock, store } = this.#deps;
    this.#reporting?.cancel();
    if (!isUnasked || !isInstance(store.instanceId)) return;
    const report = (): void => {
      this.#reporting = clock.setTimer(report, REPORT_EVERY_MS, { background: true });
      // If the store refuses it, nobody sees this instance.
      void store.rollCalls?.leave(writeAnswer(this.#own.read(new Scope(), 0))).catch(() => {});
    };
    report();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#reporting?.cancel();
    this.#own.stop();
  }

  /**
   * @throws InvalidLockOptionsError
   * @throws LockUnavailableError
   */
  async report(options: FleetOptions = {}): Promise<FleetReport> {
    FLEET_OPTIONS.check('fleet', options);
    const { prefix, group, limit, timeoutMs, scan } = FLEET_OPTIONS.filled(options);
    const { store, observers } = this.#deps;
    const { rollCalls, noRollCalls = 'the store has no roll calls' } = store;
    if (!rollCalls) throw new InvalidLockOptionsError(`fleet() cannot be used: ${noRollCalls}.`, 'store');
    const scope = new Scope(prefix, group);
    const answers = await this.#answersTo(scope, timeoutMs, rollCalls);
    const { call, unreadable, heard } = answers;
    const { asked } = call;
    const connected = (await this.#ask(() => rollCalls.connected()))?.filter((clientId) => clientId !== store.clientId);
    const isShort = asked === undefined || answers.instances.length < asked;
    const unheard = isShort ? (connected ?? []).filter((clientId) => !heard.has(clientId)).map(instanceOf) : [];
    const all = [...answers.instances, ...answers.unasked].sort(byId);
    const { holders, isScanCut } = await this.#unlisted(all, scope, scan);
    const ids = new Set(connected?.map(instanceOf));
    // A holder of a lock of this database is one of its instances.
    const silentHolders = holders.filter(({ instanceId, hasAnswered }) => !hasAnswered && ids.has(instanceId));
    const silent = new Set([...unheard, ...silentHolders.map(({ instanceId }) => instanceId)].filter(isInstance));
    const instances = all.filter((each) => isInstance(each.instanceId) || isAtWork(each));
    const observing = all.length - instances.length + unheard.filter((id) => !isInstance(id)).length;
    const isWhole = unreadable === 0 && silent.size === 0 && answers.instances.length >= (asked ?? 0);
    const report = {
      service: observers.service,
      askedAt: call.askedAt,
      completeness: !isWhole ? 'partial' : asked === undefined ? 'unknown' : 'complete',
      asked: asked === undefined ? null : Math.max(asked + answers.unasked.length - observing, instances.length),
      instances: instances.map((each) => shownOf(each, scope, limit, store.instanceId)),
      silent: [...silent].sort(),
      subscribed: asked === undefined || !connected ? null : [...ids].filter(isInstance).sort(),
      unreadable,
      isScanCut,
      deadlocks: cyclesAmong(this.#nestedWaitsIn(answers)),
    } as const;
    return { ...report, unlisted: holders.map((holder) => ({ ...holder, life: lifeOf(holder, report) })) };
  }

  /** Returns the waits of calls that hold something, in all instances; nothing if they cannot be asked. */
  nestedWaits(): Promise<NestedWaits> | undefined {
    const { rollCalls } = this.#deps.store;
    return rollCalls && this.#nestedWaits(rollCalls);
  }

  async #nestedWaits(rollCalls: RollCalls): Promise<NestedWaits> {
    return this.#nestedWaitsIn(await this.#answersTo(new Scope(), FLEET_OPTIONS.defaults.timeoutMs, rollCalls));
  }

  #nestedWaitsIn({ instances, readAt, withinMs }: Answers): NestedWaits {
    const { instanceId } = this.#deps.store;
    return { waits: instances.flatMap((each) => nestedWaitsOf(each, instanceId)), readAt, withinMs };
  }

  /** All callers of this process share one roll call a second, as processes do. */
  #answersTo(scope: Scope, timeoutMs: number, rollCalls: RollCalls): Promise<Answers> {
    const now = this.#deps.clock.now();
    for (const [key, { at }] of this.#shared) if (now >= at + ROLL_CALL_EVERY_MS) this.#shared.delete(key);
    const key = `${timeoutMs} ${scope.text}`;
    const shared = this.#shared.get(key);
    if (shared) return shared.answers;
    const answers = this.#rollCall(scope, timeoutMs, rollCalls);
    this.#shared.set(key, { at: now, answers });
    answers.catch(() => this.#shared.delete(key));
    return answers;
  }

  async #rollCall(scope: Scope, timeoutMs: number, rollCalls: RollCalls): Promise<Answers> {
    const { clock } = this.#deps;
    for (let isLast = false; ; isLast = true) {
      const begun = await this.#callFor(scope, rollCalls);
      const { call } = begun;
      const askedAt = clock.now();
      await this.#untilAnswered(call, askedAt + timeoutMs, rollCalls);
      const [texts, reports] = await Promise.all([
        this.#ask(() => rollCalls.read(call.nonce)),
        this.#ask(() => rollCalls.reports()),
      ]);
      // The event loop was blocked until the answers had expired.
      if (clock.now() - askedAt > ANSWERS_KEEP_MS - ROLL_CALL_EVERY_MS && !isLast) continue;
      return this.#read(begun, texts, reports, scope);
    }
  }

  /** Begins a roll call, or joins the current one, once that is about the same. */
  async #callFor(scope: Scope, rollCalls: RollCalls): Promise<BegunRollCall> {
    const { clock, random, closing } = this.#deps;
    for (let turn = 1; ; turn++) {
      const call = { nonce: random.id(), scope: scope.text };
      const sentAt = clock.now();
      const standing = await this.#ask(() => rollCalls.call(call));
      const begun = { call: standing, since: sentAt - standing.ageMs };
      // Answers about everything cover each scope, unless there is more than an answer can list.
      if (standing.scope === call.scope || (turn >= MAX_TURNS && standing.scope === '')) return begun;
      const waitMs = ROLL_CALL_EVERY_MS - standing.ageMs + random.fraction() * LOOK_MS.longest;
      if (turn < 2 * MAX_TURNS && (await pause(clock, waitMs, closing)) === 'time') continue;
      return begun;
    }
  }

  async #untilAnswered({ nonce, asked }: StandingRollCall, until: number, rollCalls: RollCalls): Promise<void> {
    const { clock, closing } = this.#deps;
    // In one process, all have answered by then.
    for (let turn = 0; turn < 4; turn++) await settle();
    for (let pauseMs = LOOK_MS.first; ; pauseMs = Math.min(2 * pauseMs, LOOK_MS.longest)) {
      if (asked !== undefined && (await this.#ask(() => rollCalls.count(nonce))) >= asked) return;
      const leftMs = until - clock.now();
      if (leftMs <= 0 || (await pause(clock, Math.min(leftMs, pauseMs), closing)) === 'aborted') return;
    }
  }

  #read(
    { call, since }: BegunRollCall,
    texts: ReadonlyMap<string, string>,
    reports: ReadonlyMap<string, LeftReport>,
    scope: Scope,
  ): Answers {
    const { clientId: own } = this.#deps.store;
    const read = [...texts].map(([clientId, text]) => readAnswer(text, clientId));
    const instances = read.filter((answer) => answer !== undefined);
    const unreadable = read.length - instances.length;
    // Lists this process even if it receives no messages.
    if (!texts.has(own)) instances.push(this.#own.read(scope, 0));
    const readAt = this.#deps.clock.now();
    instances.sort(byId);
    const heard = new Set([own, ...texts.keys()]);
    const unasked: FleetAnswer[] = [];
    for (const [clientId, { at, report }] of reports) {
      const ageMs = Math.max(0, call.askedAt - at);
      const answer = heard.has(clientId) || ageMs > ANSWERS_KEEP_MS ? undefined : readAnswer(report, clientId);
      if (!answer) continue;
      unasked.push(aged(answer, ageMs));
      heard.add(clientId);
    }
    return { call, instances, unasked, unreadable, heard, readAt, withinMs: readAt - since };
  }

  /** Holders that no answer lists, of what a listed call waits for; with `scan`, of all that is held. */
  async #unlisted(instances: readonly FleetAnswer[], scope: Scope, scan: boolean) {
    const listed = new Set(
      instances.flatMap(({ held }) => held.map(({ resource, fencingToken }) => leaseKey(resource, fencingToken))),
    );
    const answered = new Set(instances.map(({ instanceId }) => instanceId));
    const unlistedIn = ({ resource, holders }: LockState) =>
      holders
        .filter(({ fencingToken, isKept }) => !isKept && !listed.has(leaseKey(resource, fencingToken)))
        .map((holder) => ({ ...holder, resource, hasAnswered: answered.has(holder.instanceId) }));
    if (scan) {
      const { states, isCut } = await this.#deps.scan({ prefix: scope.prefix, limit: MAX_SCANNED });
      return { holders: states.flatMap(unlistedIn), isScanCut: isCut };
    }
    const held = new Set(instances.flatMap((each) => each.held.map(({ resource }) => resource)));
    const waiting = instances.flatMap((each) => each.waiting);
    const wanted = waiting.filter(({ resource, group }) => scope.has(resource, () => group) && !held.has(resource));
    const open = [...new Set(wanted.map(({ resource }) => resource))];
    const found: ReturnType<typeof unlistedIn>[] = [];
    for (const some of chunks(open.slice(0, MAX_LOOKS), LOOKS_AT_ONCE)) {
      found.push(...(await Promise.all(some.map(async (resource) => unlistedIn(await this.#deps.inspect(resource))))));
    }
    return { holders: found.flat(), isScanCut: false };
  }

  /** @throws LockUnavailableError */
  #ask<T>(send: () => Promise<T>): Promise<T> {
    return ask(this.#deps, send, 'poll the instances', '');
  }
}

/** A program that only observes is no instance, unless it holds or waits for something, as `exec` does. */
const isInstance = (instanceId: string): boolean => !instanceId.startsWith(OBSERVER_PREFIX);
const isAtWork = ({ held, waiting, more }: FleetAnswer): boolean =>
  held.length + waiting.length + more.held + more.waiting > 0;

const byId = (a: FleetAnswer, b: FleetAnswer): number => (a.instanceId < b.instanceId ? -1 : 1);

/** Returns a report as it should be now. */
function aged(report: FleetAnswer, ageMs: number): FleetAnswer {
  const held = report.held.map(({ heldMs, ...lease }) => ({ ...lease, heldMs: heldMs + ageMs }));
  const waiting = report.waiting.map(({ waitedMs, ...call }) => ({ ...call, waitedMs: waitedMs + ageMs }));
  return { ...report, held, waiting };
}

/** Leases that one process passes on in memory have tokens of one tick, and Redis knows the first of them. */
function leaseKey(resource: string, fencingToken: number): string {
  return `${fencingTickOf(fencingToken)} ${resource}`;
}

/** The calls of an instance that wait while they hold something, as far as it lists them. @param own the one that asks */
function nestedWaitsOf({ instanceId, waiting, held }: FleetAnswer, own: string): NestedWaits['waits'] {
  const modes = new Map(held.map(({ resource, fencingToken, mode }) => [`${fencingToken} ${resource}`, mode]));
  return waiting.flatMap((wait) => {
    if (wait.holds.length === 0) return [];
    const holds = wait.holds.map(({ resource, fencingToken }) => {
      return { resource, mode: modes.get(`${fencingToken} ${resource}`) };
    });
    return [{ ...wait, instanceId, isThisProcess: instanceId === own, holds }];
  });
}

/** Returns the part of an answer that the caller asked for. It may answer another question. */
function shownOf(
  answer: FleetAnswer,
  scope: Scope,
  limit: number,
  instanceId: string,
): FleetReport['instances'][number] {
  const held = answer.held.filter(({ resource, group }) => scope.has(resource, () => group));
  const waiting = answer.waiting.filter(({ resource, group }) => scope.has(resource, () => group));
  const more = {
    ...answer.more,
    held: answer.more.held + Math.max(0, held.length - limit),
    waiting: answer.more.waiting + Math.max(0, waiting.length - limit),
  };
  return {
    ...answer,
    isThisInstance: answer.instanceId === instanceId,
    held: held.slice(0, limit),
    waiting: waiting.slice(0, limit),
    more,
  };
}
