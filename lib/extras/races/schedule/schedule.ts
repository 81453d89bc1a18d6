import {
  type Access,
  type Actor,
  type ActorTurns,
  ANYTHING,
  EVERYTHING,
  NOTHING,
  type Ordered,
  runAsActor,
  type StepNote,
} from './race-context.js';
import { nameTokens, type StoryStep, formatTimePassed } from './story.js';

/** Taken when the module is loaded, so that fake timers which a test installs later do not stop the tool. */
export const REAL = { setImmediate, setTimeout, clearTimeout };

/** The name of the actor that lets time pass. */
export const TIME = 'time';

export interface Choice extends Ordered {
  /** Its line in the story. */
  readonly text: string;
  /** The step after which it became possible; -1 for the beginning. */
  readonly since: number;
  /** `true` if nothing else could be done, so it cannot be swapped with earlier steps. */
  readonly isForced?: boolean;
}

interface Pending extends Choice {
  /** `true` if the story omits it. */
  readonly isSilent: boolean;
  go(): void | Promise<void>;
}

export interface Step extends Choice, StoryStep {}

/** Picks one of the possible steps. */
export type Choose = (choices: readonly Choice[]) => Choice | undefined;

/**
 * The end of a schedule: all actors have ended; nothing can continue; it has too many steps; {@link Choose} stopped it.
 */
export type ScheduleEnding = 'over' | 'stuck' | 'endless' | 'stopped';

/** Time that only passes when nothing else can happen. */
export interface SteppedTime {
  /** The milliseconds until the next timer; `undefined` if none is set. */
  nextInMs(): number | undefined;
  /** Lets the next timer fire. */
  step(): Promise<void>;
}

/** A fault that is possible at this point of the schedule. */
export interface Fault {
  /** Kind and actor, the same in every schedule. */
  readonly id: string;
  readonly actor: string;
  readonly text: string;
  readonly access: Access;
  happen(): void | Promise<void>;
}

interface ScheduleOptions {
  /** `true` if unnamed code touches nothing that another actor sees. */
  readonly onlyNamed: boolean;
  readonly time?: SteppedTime | undefined;
  /** Called after each step of an actor. */
  readonly afterStep?: ((actor: string) => void) | undefined;
  readonly mostFaults: number;
  /** Returns the faults that are possible now. */
  readonly faults?: (() => readonly Fault[]) | undefined;
  readonly mostSteps: number;
  /** The time to wait for code outside the tool's control, in real milliseconds. */
  readonly patienceMs: number;
}

/** Turns of the event loop for an actor that is at no point: it may wait for code outside the tool's control. */
const TURNS = 5;
/** Timers that may fire in a row without an actor that reaches a point or ends. */
const MAX_TIMERS = 2_000;
const NEVER = new Promise<never>(() => {});

/**
 * One run of all actors. Exactly one of them runs at a time, from one point to its next, as {@link Choose} picks them.
 */
export class Schedule implements ActorTurns {
  readonly actors: Actor[] = [];
  readonly steps: (Step & { text: string })[] = [];
  readonly #pending = new Map<string, Pending>();
  readonly waits = new Map<Actor, string>();
  /** By fencing token, the actors that were granted it. */
  readonly tokens = new Map<number, Set<string>>();
  /** Lines of the story that were no choice, each with the number of steps before it. */
  readonly #asides: (StoryStep & { readonly after: number })[] = [];
  /** Counts everything that happens, to notice when nothing does. */
  #activity = 0;
  #faults = 0;
  #hasEnded = false;
  /** `true` if time passed and no actor could continue. */
  #isStuck = false;

  constructor(private readonly options: ScheduleOptions) {}

  get onlyNamed(): boolean {
    return this.options.onlyNamed;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Adds an actor. It begins as a step of its own. */
  add(name: string, work: () => unknown): void {
    const actor: Actor = { name, points: 0, state: 'running' };
    this.actors.push(actor);
    const begin = async (): Promise<unknown> => {
      await this.unnamedPoint(actor, 'begins');
      return work();
    };
    runAsActor({ schedule: this, actor }, begin).then(
      (value) => this.#end(actor, 'returned', value),
      (error: unknown) => this.#end(actor, 'threw', error),
    );
  }

  point(actor: Actor, text: string, access: Access): Promise<StepNote> {
    return this.#step(actor, text, access, false);
  }

  unnamedPoint(actor: Actor, text: string): Promise<StepNote> {
    return this.#step(actor, text, this.onlyNamed ? NOTHING : ANYTHING, true);
  }

  #step(actor: Actor, text: string, access: Access, isSilent: boolean): Promise<StepNote> {
    if (this.#hasEnded || actor.state === 'killed') return NEVER;
    this.#activity++;
    this.waits.delete(actor);
    const id = `${actor.name}${++actor.points}`;
    const since = this.steps.length - 1;
    return new Promise((resolve) => {
      const go = (): void => resolve(noteOn(this.steps.at(-1)!));
      this.#pending.set(id, { id, actor: actor.name, text, access, since, isSilent, go });
    });
  }

  #end(actor: Actor, state: 'returned' | 'threw', value: unknown): void {
    if (this.#hasEnded || actor.state !== 'running') return;
    this.#activity++;
    actor.state = state;
    actor.value = value;
    actor.endedAfter = this.steps.length;
  }

  addLine(actor: Actor, text: string): void {
    if (this.#hasEnded) return;
    this.#asides.push({ actor: actor.name, text, isSilent: false, after: this.steps.length });
  }

  granted(actor: Actor, fencingToken: number): void {
    const actors = this.tokens.get(fencingToken) ?? new Set();
    this.tokens.set(fencingToken, actors.add(actor.name));
  }

  /**
   * Returns the steps for the story.
   *
   * @param ends describes the end of an actor
   */
  story(ends: (actor: Actor) => string | undefined): StoryStep[] {
    const asides = [...this.#asides];
    for (const actor of this.actors) {
      const text = ends(actor);
      const { name, endedAfter: after = this.steps.length } = actor;
      if (text !== undefined) asides.push({ actor: name, text, isSilent: false, after });
    }
    const names = nameTokens(this.tokens);
    const behind = (count: number): StoryStep[] => asides.filter(({ after }) => after === count);
    const steps = this.steps.flatMap((step, index): StoryStep[] => [step, ...behind(index + 1)]);
    return [...behind(0), ...steps].map(({ actor, text, isSilent }) => ({ actor, text: names(text), isSilent }));
  }

  kill(name: string): void {
    for (const actor of this.actors) if (actor.name === name && actor.state === 'running') actor.state = 'killed';
    for (const [id, pending] of this.#pending) if (pending.actor === name) this.#pending.delete(id);
  }

  /** Lets the actors take turns until all have ended, or none can continue. */
  async run(choose: Choose): Promise<ScheduleEnding> {
    try {
      return await this.#takeTurns(choose);
    } finally {
      this.#hasEnded = true;
    }
  }

  async #takeTurns(choose: Choose): Promise<ScheduleEnding> {
    for (;;) {
      await this.#settle();
      let forced: Pending | undefined;
      if (this.#pending.size === 0) {
        if (this.actors.every(({ state }) => state !== 'running')) return 'over';
        if (this.#waitsElsewhere() && (await this.#hasMoved())) continue;
        forced = this.#passing();
        if (forced === undefined) return 'stuck';
      }
      if (this.steps.length >= this.options.mostSteps) return 'endless';
      const choices = forced ? [forced] : [...this.#pending.values(), ...this.#possibleFaults()];
      const chosen = choose(choices) as Pending | undefined;
      if (chosen === undefined) return 'stopped';
      await this.#take(chosen);
      if (forced && this.#isStuck) return 'stuck';
    }
  }

  async #take(chosen: Pending): Promise<void> {
    this.#pending.delete(chosen.id);
    const { go, ...step } = chosen;
    this.steps.push(step);
    if (chosen.isFault) this.#faults++;
    await go();
    const { afterStep } = this.options;
    if (afterStep === undefined || chosen.isFault || chosen.isForced) return;
    await this.#settle();
    afterStep(chosen.actor);
  }

  /** Returns a step that lets time pass until an actor can continue. */
  #passing(): Pending | undefined {
    const { time } = this.options;
    if (time?.nextInMs() === undefined) return undefined;
    const since = this.steps.length - 1;
    const go = (): Promise<void> => this.#letTimePass(time);
    const id = `${TIME}${since}`;
    return { id, actor: TIME, text: 'time passes', access: EVERYTHING, since, isForced: true, isSilent: false, go };
  }

  async #letTimePass(time: SteppedTime): Promise<void> {
    const before = this.#activity;
    let passedMs = 0;
    for (let timers = 0; this.#activity === before; timers++) {
      const inMs = time.nextInMs();
      this.#isStuck = inMs === undefined || timers === MAX_TIMERS;
      if (this.#isStuck) break;
      passedMs += inMs!;
      await time.step();
    }
    this.steps.at(-1)!.text = formatTimePassed(passedMs);
  }

  #possibleFaults(): Pending[] {
    const { faults, mostFaults } = this.options;
    if (faults === undefined || this.#faults >= mostFaults) return [];
    const since = this.steps.length - 1;
    return faults().map(({ happen, ...fault }) => ({ ...fault, since, isFault: true, isSilent: false, go: happen }));
  }

  /** The actors at a point: faults can hit them. */
  get atPoints(): ReadonlySet<string> {
    return new Set([...this.#pending.values()].map(({ actor }) => actor));
  }

  /** The started actors at a point. */
  get begunAtPoints(): string[] {
    const begun = new Set(this.steps.map(({ actor }) => actor));
    return [...this.atPoints].filter((name) => begun.has(name));
  }

  /** Waits until all code waits at points, or for something outside the tool's control. */
  async #settle(): Promise<void> {
    for (let quiet = 0; quiet < TURNS; quiet++) {
      const before = this.#activity;
      await new Promise((resolve) => REAL.setImmediate(resolve));
      if (this.#activity !== before) quiet = -1;
      else if (this.#isEachAtPoint()) return;
    }
  }

  #isEachAtPoint(): boolean {
    const { atPoints } = this;
    return this.actors.every(({ name, state }) => state !== 'running' || atPoints.has(name));
  }

  /** Returns true if an actor waits for something that the tool does not know. */
  #waitsElsewhere(): boolean {
    return this.actors.some((actor) => actor.state === 'running' && !this.waits.has(actor));
  }

  /** Waits for an actor that may be waiting for a file, a socket or a timer of its own, because none is at a point. */
  async #hasMoved(): Promise<boolean> {
    const before = this.#activity;
    const until = performance.now() + this.options.patienceMs;
    for (let pauseMs = 1; performance.now() < until; pauseMs = Math.min(20, pauseMs * 2)) {
      await new Promise((resolve) => REAL.setTimeout(resolve, pauseMs));
      if (this.#activity !== before) return true;
    }
    return false;
  }

  /** Describes the wait of each actor that has not ended. */
  describeWaits(): string {
    const left = this.actors.filter(({ state }) => state === 'running');
    return left
      .map((actor) => {
        const last = this.steps.findLast((step) => step.actor === actor.name && !step.isSilent);
        const after = last ? `, after "${last.text}"` : '';
        return `${actor.name} waits for ${this.waits.get(actor) ?? 'something other than a race point'}${after}`;
      })
      .join('; ');
  }
}

function noteOn(step: { text: string }): StepNote {
  return { add: (text) => void (step.text += text) };
}
