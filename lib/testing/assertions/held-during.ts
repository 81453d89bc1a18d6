import { LeaseLostError } from '../../kernel/api/lease-errors.js';
import type { LockMode } from '../../kernel/api/lock-mode.js';
import { checkResource } from '../../kernel/api/resource.js';
import { checkFunction, Option, type OptionsOf, OptionTable } from '../../kernel/api/validation.js';
import { nearest } from '../../kernel/api/nearest.js';
import type { LockEvent } from '../../kernel/events/events.js';
import { quote } from '../../kernel/util/quoted.js';
import { settle } from '../../kernel/util/promises.js';
import { aroundCalls, failed, lineOf, type LocksUnderTest, type Touched } from './locks-under-test.js';

/** Options of `expectHeldDuring`. */
export interface HeldDuringOptions {
  /**
   * The mode in which the lock must be held.
   *
   * @default any mode
   */
  mode?: LockMode;
  /**
   * The objects that the lock protects, such as a repository. The resource must be held during each call of a method of
   * these objects, and the work must call at least one.
   *
   * @allowed an object with methods, or an array of such objects
   * @default none: the lock must then be the first thing that the work awaits, and its release the last
   */
  touching?: Touched;
}

const MODES = ['exclusive', 'reentrant', 'read', 'write', 'semaphore'] as const satisfies readonly LockMode[];

export const HELD_DURING_OPTIONS = new OptionTable({
  mode: Option.oneOf<LockMode>(MODES),
  touching: Option.checked<Touched>(),
} satisfies OptionsOf<HeldDuringOptions>);

/** See `TestLocks.expectHeldDuring`. */
export async function expectHeldDuring<T>(
  locks: LocksUnderTest,
  resource: string,
  work: () => T | Promise<T>,
  options: HeldDuringOptions = {},
): Promise<T> {
  const name = checkResource(resource, 'expectHeldDuring');
  checkFunction('work', work);
  HELD_DURING_OPTIONS.check('expectHeldDuring', options);
  const { mode, touching } = options;
  const before = locks.states().find((state) => state.resource === name);
  const own = before?.holders.find(({ instanceId }) => instanceId === locks.instanceId);
  if (own) {
    const site = locks.callSiteOf(name, own.fencingToken);
    throw failed(
      expectHeldDuring,
      `The application held ${quote(name)} already before the work began${site ? `, acquired at ${site}` : ''}. ` +
        'Release it first: otherwise the lock of the work cannot be checked.',
      { actual: 'held before', expected: 'acquired by the work' },
    );
  }
  const watch = new WorkWatch(name, mode, touching !== undefined);
  const stop = locks.observe((event) => watch.hear(event));
  let undo = (): void => {};
  try {
    if (touching) undo = aroundCalls('expectHeldDuring', touching, (method, call) => watch.touch(method, call));
    watch.start();
    let loss: LeaseLostError | undefined;
    const result = await Promise.resolve(work()).catch((error: unknown) => {
      if (!(error instanceof LeaseLostError)) throw error;
      loss = error;
      return error.value as T;
    });
    watch.end();
    // A release in the background is answered after the work.
    await settle();
    const { problem, story } = watch;
    if (problem === undefined && loss) throw loss;
    if (problem === undefined) return result;
    throw failed(expectHeldDuring, `${quote(name)} was not held during the work: ${problem}.`, {
      actual: problem,
      expected: `held${mode ? ` in mode ${mode}` : ''} from the start to the end of the work`,
      story,
    });
  } finally {
    watch.end();
    undo();
    stop();
  }
}

class WorkWatch {
  readonly story: string[] = [];
  readonly #held = new Set<number>();
  readonly #acquired = new Set<string>();
  /** Calls on protected objects that have not ended. */
  readonly #touching: string[] = [];
  #touches = 0;
  #leases = 0;
  #isAsked = false;
  #hasTurned = false;
  #isOver = false;
  #problem: string | undefined;

  constructor(
    private readonly resource: string,
    private readonly mode: LockMode | undefined,
    private readonly isByTouches: boolean,
  ) {}

  get problem(): string | undefined {
    if (this.#leases === 0) return this.#neverAcquired();
    if (this.#problem === undefined && this.isByTouches && this.#touches === 0) {
      return 'the work called no method of an object in `touching`';
    }
    return this.#problem;
  }

  start(): void {
    void settle().then(() => (this.#hasTurned = true));
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const [running] = this.#touching;
    if (running !== undefined) this.#fail(`${running} still ran when the work had ended. Await it`);
  }

  hear(event: LockEvent): void {
    if (this.#isOver) return;
    const line = lineOf(event);
    if (line !== undefined) this.story.push(line);
    if (event.type === 'acquired') this.#acquired.add(event.resource);
    if (!('resource' in event) || event.resource !== this.resource) return;
    switch (event.type) {
      case 'waiting':
        return this.#asked();
      case 'acquired':
        this.#asked();
        return this.#began(event.fencingToken, event.mode);
      case 'released':
      case 'leaseAbandoned':
        return this.#ended(event.fencingToken);
      case 'lost':
        this.#fail(`the lease was lost (${event.reason})`);
        return this.#ended(event.fencingToken);
      default:
    }
  }

  /** Called for a method of a protected object. */
  touch(method: string, call: () => unknown): unknown {
    if (this.#isOver) return call();
    this.#touches++;
    this.#checkHeld(`when ${method} was called`);
    this.story.push(`called ${method}`);
    this.#touching.push(method);
    const ended = (): void => {
      this.#touching.splice(this.#touching.indexOf(method), 1);
      if (!this.#isOver) this.#checkHeld(`any more when ${method} had ended`);
    };
    let result: unknown;
    try {
      result = call();
    } catch (error) {
      ended();
      throw error;
    }
    if (result instanceof Promise) result.then(ended, ended);
    else ended();
    return result;
  }

  #checkHeld(when: string): void {
    if (this.#held.size === 0) this.#fail(`it was not held ${when}`);
  }

  #asked(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    if (this.#hasTurned && !this.isByTouches) {
      this.#fail(
        'the work waited for something else before it requested the lock. If that needs no lock, name the objects that ' +
          'do, such as touching: repository',
      );
    }
  }

  #began(fencingToken: number, mode: LockMode): void {
    if (this.mode !== undefined && mode !== this.mode) this.#fail(`it was held in mode ${mode}, not ${this.mode}`);
    if (this.#leases > 0 && this.#held.size === 0 && !this.isByTouches) {
      this.#fail('it was released and acquired again. In between, another instance could have got it');
    }
    this.#leases++;
    this.#held.add(fencingToken);
  }

  #ended(fencingToken: number): void {
    if (!this.#held.delete(fencingToken) || this.#held.size > 0 || this.isByTouches) return;
    void settle().then(() => {
      if (!this.#isOver && this.#held.size === 0) {
        this.#fail(
          'it was released before the work ended. If the rest needs no lock, name the objects that do, such as touching: repository',
        );
      }
    });
  }

  #neverAcquired(): string {
    const near = nearest(this.resource, [...this.#acquired]);
    const [other] = this.#acquired;
    const hint = near ?? other;
    return `it was never acquired${hint === undefined ? '' : `. The work acquired ${quote(hint)}`}`;
  }

  /** The first problem explains the others. */
  #fail(problem: string): void {
    this.#problem ??= problem;
  }
}
