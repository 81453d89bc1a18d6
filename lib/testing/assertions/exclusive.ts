import { AsyncLocalStorage } from 'node:async_hooks';
import { checkFunction, Option, type OptionsOf, OptionTable } from '../../kernel/api/validation.js';
import { settle } from '../../kernel/util/promises.js';
import { aroundCalls, failed, lineOf, type LocksUnderTest, type Touched } from './locks-under-test.js';
import { LockBusyError } from '../../kernel/api/busy-errors.js';

/** Options of `expectExclusive`. */
export interface ExclusiveOptions {
  /**
   * The number of concurrent calls of `run`.
   *
   * @allowed 2 to 1000
   * @default 2
   */
  times?: number;
  /**
   * The objects that the lock protects, such as a repository. The assertion fails if a run calls a method of these
   * objects between the first and the last such call of another run. Before each call, the other runs get a turn.
   *
   * @allowed an object with methods, or an array of such objects
   * @default none: the assertion then fails if two runs are in their `section` at the same time
   */
  touching?: Touched;
}

export const EXCLUSIVE_OPTIONS = new OptionTable({
  times: Option.integer(2, 1_000, 'runs').default(2),
  touching: Option.checked<Touched>(),
} satisfies OptionsOf<ExclusiveOptions>);

/**
 * The part of a run that excludes the other runs. Call it under the lock: `locks.using('order:7', () => section())`. It
 * gives the other runs a turn, and then calls the work, if you pass a function.
 */
export type Section = <T = void>(work?: () => T | Promise<T>) => Promise<T>;

/** See `TestLocks.expectExclusive`. */
export async function expectExclusive<T>(
  locks: LocksUnderTest,
  run: (section: Section, index: number) => T | Promise<T>,
  options: ExclusiveOptions = {},
): Promise<PromiseSettledResult<T>[]> {
  checkFunction('run', run);
  EXCLUSIVE_OPTIONS.check('expectExclusive', options);
  const { times, touching } = EXCLUSIVE_OPTIONS.filled(options);
  const runs = new Runs(times);
  const stop = locks.observe((event) => {
    const line = lineOf(event);
    if (line !== undefined) runs.story.push(line);
    if (event.type === 'waiting' || event.type === 'notAcquired') runs.isContended = true;
    if (event.type === 'acquired') {
      runs.isLocked = true;
      if (event.handedOn || event.hasWaited) runs.isContended = true;
    }
    if (event.type === 'tickSkipped') runs.isLocked = runs.isContended = true;
  });
  let undo = (): void => {};
  let results: PromiseSettledResult<T>[];
  try {
    if (touching) undo = aroundCalls('expectExclusive', touching, (name, call) => runs.touch(name, call));
    results = await Promise.allSettled(Array.from({ length: times }, async (_, index) => runs.start(index, run)));
  } finally {
    undo();
    stop();
  }
  const { story } = runs;
  const fail = (message: string, actual: string, expected: string): Error =>
    failed(expectExclusive, message, { actual, expected, story });
  if (runs.overlap) throw fail(runs.overlap, 'two runs at once', 'one run at a time');
  // A run that did not get the lock has been excluded, as expected.
  const broken = results.find((result) => result.status === 'rejected' && !(result.reason instanceof LockBusyError));
  if (broken) throw (broken as PromiseRejectedResult).reason;
  if (runs.entered === 0) {
    throw fail(
      touching
        ? 'No run called a method of an object in `touching`, so the lock was not tested.'
        : 'No run called section(), so the lock was not tested. Call it where the lock is held, or name what the ' +
            'lock protects: touching: repository.',
      'no run was inside',
      'one run at a time',
    );
  }
  if (!runs.isLocked) throw fail('The runs took no lock.', 'no lock', 'a lock for which the runs compete');
  if (!runs.isContended) {
    throw fail(
      'The runs did not compete for a lock: none of them waited, and none was refused. Do they lock the same resource?',
      'no run waited',
      'a lock for which the runs compete',
    );
  }
  return results;
}

/** The runs of one function, and which of them are inside. */
class Runs {
  readonly story: string[] = [];
  isLocked = false;
  isContended = false;
  overlap: string | undefined;
  entered = 0;
  readonly #current = new AsyncLocalStorage<number>();
  /** The nesting of sections or calls, by run. */
  readonly #depth: number[];
  /** The first call on a protected object, by run, while it may call again. */
  readonly #first = new Map<number, string>();
  /** The calls of other runs since its last one, by run. */
  readonly #between = new Map<number, { readonly run: number; readonly name: string }>();

  constructor(times: number) {
    this.#depth = Array.from({ length: times }, () => 0);
  }

  async start<T>(index: number, run: (section: Section, index: number) => T | Promise<T>): Promise<T> {
    const section: Section = (work) => this.#inside(index, 'its section', work as () => never);
    try {
      return await this.#current.run(index, () => run(section, index));
    } finally {
      this.#first.delete(index);
      this.#between.delete(index);
    }
  }

  /** Called for a method of a protected object. A promise stays a promise, and a plain result stays plain. */
  touch(name: string, call: () => unknown): unknown {
    const index = this.#current.getStore();
    if (index === undefined) return call();
    const other = this.#between.get(index);
    // It continues with data that it read before.
    if (other) this.#overlaps(index, name, other.run, other.name);
    this.#between.delete(index);
    for (const each of this.#first.keys()) if (each !== index) this.#between.set(each, { run: index, name });
    if (!this.#first.has(index)) this.#first.set(index, name);
    this.#enter(index, name);
    let result: unknown;
    try {
      result = call();
    } catch (error) {
      this.#leave(index);
      throw error;
    }
    if (!(result instanceof Promise)) {
      this.#leave(index);
      return result;
    }
    return this.#after(index, result);
  }

  async #after<T>(index: number, result: Promise<T>): Promise<T> {
    try {
      const value = await result;
      // The others get a turn between the reads and the writes of this run.
      await settle();
      return value;
    } finally {
      this.#leave(index);
    }
  }

  async #inside<T>(index: number, name: string, work: (() => T | Promise<T>) | undefined): Promise<T> {
    this.#enter(index, name);
    try {
      await settle();
      return (await work?.()) as T;
    } finally {
      this.#leave(index);
    }
  }

  #enter(index: number, name: string): void {
    this.entered++;
    const other = this.#depth.findIndex((depth, run) => depth > 0 && run !== index);
    if (other !== -1) this.#overlaps(other, this.#first.get(other) ?? 'its section', index, name);
    this.#depth[index]!++;
    this.story.push(`run ${index + 1} is in ${name}`);
  }

  #leave(index: number): void {
    this.#depth[index]!--;
  }

  #overlaps(run: number, name: string, other: number, otherName: string): void {
    this.overlap ??=
      `Two runs were inside at once: run ${run + 1} was in ${name}, and run ${other + 1} entered ${otherName} before ` +
      'that had ended. Does the lock cover all of it, under the same name in each run?';
  }
}
