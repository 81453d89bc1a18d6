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
import { nameTokens, type StoryStep, tellTime } from './story.js';

/** Taken when the module is loaded, so that fake timers which a test installs later do not stop the tool. */
export const REAL = { setImmediate, setTimeout, clearTimeout };

/** The name of the actor that lets time pass. */
export const TIME = 'time';

/** What can be done next. */
export interface Choice extends Ordered {
  /** What it does, for the story. */
  readonly text: string;
  /** After which step it became possible; -1 for the beginning. */
  readonly since: number;
  /** Nothing else could be done, so it cannot change places with what came before. */
  readonly isForced?: boolean;
}

interface Pending extends Choice {
  /** Whether the story leaves it out. */
  readonly isSilent: boolean;
  go(): void | Promise<void>;
}

export interface Step extends Choice, StoryStep {}

/** What could be done at a step, and what was. */
export type Choose = (choices: readonly Choice[]) => Choice | undefined;

/** How a schedule ended: all actors ended; nothing can go on; {@link Choose} has stopped it. */
export type ScheduleEnding = 'over' | 'stuck' | 'endless' | 'stopped';

/** Time that passes only where nothing else can happen. */
export interface SteppedTime {
  /** How long until the next timer, in milliseconds; `undefined` if none is set. */
  nextInMs(): number | undefined;
  /** Lets the next timer fire. */
  step(): Promise<void>;
}

/** Something that can go wrong at this point of the schedule. */
export interface Fault {
  /** Kind and actor, the same in every schedule. */
  readonly id: string;
  readonly actor: string;
  readonly text: string;
  readonly access: Access;
  happen(): void | Promise<void>;
}

interface ScheduleOptions {
  /** Whether code that names nothing touches nothing that another actor sees. */
  readonly onlyNamed: boolean;
  readonly time?: SteppedTime | undefined;
  /** Called when the step of an actor has come to its end. */
  readonly afterStep?: ((actor: string) => void) | undefined;
  readonly mostFaults: number;
  /** What can go wrong now. */
  readonly faults?: (() => readonly Fault[]) | undefined;
  readonly mostSteps: number;
  /** How long to wait for code that the tool does not control, in real milliseconds. */
  readonly patienceMs: number;
}

/** How many turns of the event loop an actor has that is at no point: it may wait for what the tool does not control. */
const TURNS = 5;
/** How many timers may fire in a row without an actor that comes to a point or ends. */
const MAX_TIMERS = 2_000;
const NEVER = new Promise<never>(() => {});

/**
 * One run of all actors. Exactly one of them goes on at a time, from one point to its next; {@link Choose} says which.
 */
export class Schedule implements ActorTurns {
  readonly actors: Actor[] = [];
  readonly steps: (Step & { text: string })[] = [];
  readonly #pending = new Map<string, Pending>();
  readonly waits = new Map<Actor, string>();
  /** By fencing token, the actors that were granted it. */
  readonly tokens = new Map<number, Set<string>>();
  /** What was no choice, each behind so many steps. */
  readonly #asides: (StoryStep & { readonly after: number })[] = [];
  /** Counts what happens, to notice when nothing does. */
  #activity = 0;
  #faults = 0;
  #isOver = false;
  /** Whether time has passed in vain. */
  #isStuck = false;

  constructor(private readonly options: ScheduleOptions) {}

  get onlyNamed(): boolean {
    return this.options.onlyNamed;
  }

  get isOver(): boolean {
    return this.#isOver;
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
    if (this.#isOver || actor.state === 'killed') return NEVER;
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
    if (this.#isOver || actor.state !== 'running') return;
    this.#activity++;
    actor.state = state;
    actor.value = value;
    actor.endedAfter = this.steps.length;
  }

  tell(actor: Actor, text: string): void {
    if (this.#isOver) return;
    this.#asides.push({ actor: actor.name, text, isSilent: false, after: this.steps.length });
  }

  granted(actor: Actor, fencingToken: number): void {
    const actors = this.tokens.get(fencingToken) ?? new Set();
    this.tokens.set(fencingToken, actors.add(actor.name));
  }

  /**
   * The steps as the story tells them.
   *
   * @param ends what is told of the end of an actor
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

  /** Lets the actors take turns until all have ended, or none can go on. */
  async run(choose: Choose): Promise<ScheduleEnding> {
    try {
      return await this.#takeTurns(choose);
    } finally {
      this.#isOver = true;
    }
  }

  async #takeTurns(choose: Choose): Promise<ScheduleEnding> {
    for (;;) {
      await this.#settle();
      let forced: Pending | undefined;
      if (this.#pending.size === 0) {
        if (this.actors.every(({ state }) => state !== 'running')) return 'over';
        if (this.#isElsewhere() && (await this.#hasMoved())) continue;
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

  /** Time passes until an actor can go on, as a step of its own. */
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
    this.steps.at(-1)!.text = tellTime(passedMs);
  }

  #possibleFaults(): Pending[] {
    const { faults, mostFaults } = this.options;
    if (faults === undefined || this.#faults >= mostFaults) return [];
    const since = this.steps.length - 1;
    return faults().map(({ happen, ...fault }) => ({ ...fault, since, isFault: true, isSilent: false, go: happen }));
  }

  /** The actors at a point: something can be done to them there. */
  get atPoints(): ReadonlySet<string> {
    return new Set([...this.#pending.values()].map(({ actor }) => actor));
  }

  /** The same, without those that have not begun. */
  get begunAtPoints(): string[] {
    const begun = new Set(this.steps.map(({ actor }) => actor));
    return [...this.atPoints].filter((name) => begun.has(name));
  }

  /** Waits until nothing runs any more but what waits at points, or for what the tool does not control. */
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

  /** Whether an actor waits for something that the tool does not know. */
  #isElsewhere(): boolean {
    return this.actors.some((actor) => actor.state === 'running' && !this.waits.has(actor));
  }

  /** No actor is at a point. An actor may wait for a file, a socket, a timer of its own. */
  async #hasMoved(): Promise<boolean> {
    const before = this.#activity;
    const until = performance.now() + this.options.patienceMs;
    for (let pauseMs = 1; performance.now() < until; pauseMs = Math.min(20, pauseMs * 2)) {
      await new Promise((resolve) => REAL.setTimeout(resolve, pauseMs));
      if (this.#activity !== before) return true;
    }
    return false;
  }

  /** What each actor that has not ended waits for. */
  describeWaits(): string {
    const left = this.actors.filter(({ state }) => state === 'running');
    return left
      .map((actor) => {
        const last = this.steps.findLast((step) => step.actor === actor.name && !step.isSilent);
        const after = last ? `, after "${last.text}"` : '';
        return `${actor.name} waits for ${this.waits.get(actor) ?? 'something that is not a point'}${after}`;
      })
      .join('; ');
  }
}

function noteOn(step: { text: string }): StepNote {
  return { add: (text) => void (step.text += text) };
}
