import fc from 'fast-check';
import { ANYTHING, NOTHING } from '../../../lib/extras/races/schedule/race-context.js';
import { racePoint } from '../../../lib/extras/races/raced.js';
import type { Search } from '../../../lib/extras/races/search/order-search.js';
import { type FaultKind, RaceKit } from '../../../lib/extras/races/locks/race-kit.js';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { type Fault, Schedule } from '../../../lib/extras/races/schedule/schedule.js';

/** One step of an actor of a random program. */
export type Statement =
  /** Reads or writes an object at a point that names it. */
  | { readonly do: 'read' | 'write' | 'add'; readonly object: string }
  /** Writes x by y at a point that names none; `as`: a wrong one. */
  | { readonly do: 'move'; readonly as?: string }
  /** Does two things at the same time, as Promise.all. */
  | { readonly do: 'both'; readonly first: string; readonly second: string }
  /** Waits, outside of any point, until an actor has opened the gate; opens it. */
  | { readonly do: 'wait' }
  | { readonly do: 'open' }
  /** Starts it without waiting. */
  | { readonly do: 'later'; readonly object: string };

/** A statement under a lock; `try`: only if the lock is free. */
export type LockedStatement =
  | Statement
  | { readonly do: 'locked' | 'try'; readonly resource: string; readonly object: string };

export type Program = readonly (readonly LockedStatement[])[];

const object = fc.constantFrom('x', 'y');

const statement: fc.Arbitrary<Statement> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom('read' as const, 'write' as const, 'add' as const), object }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('move' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('both' as const), first: object, second: object }) },
  { weight: 1, arbitrary: fc.constantFrom<Statement>({ do: 'wait' }, { do: 'open' }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('later' as const), object }) },
);

/** Two actors with up to so many statements, or three with up to half of them. */
export function programs(most: number): fc.Arbitrary<Program> {
  return fc.oneof(
    fc.array(fc.array(statement, { minLength: 1, maxLength: most }), { minLength: 2, maxLength: 2 }),
    fc.array(fc.array(statement, { minLength: 1, maxLength: Math.floor(most / 2) }), { minLength: 3, maxLength: 3 }),
  );
}

const locked: fc.Arbitrary<LockedStatement> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('read' as const, 'add' as const), object }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('locked' as const, 'locked' as const, 'try' as const),
      resource: fc.constantFrom('l', 'l', 'm'),
      object,
    }),
  },
);

/** Two actors with up to so many statements, most of them with locks. */
export function lockedPrograms(most: number): fc.Arbitrary<Program> {
  return fc.array(fc.array(locked, { minLength: 1, maxLength: most }), { minLength: 2, maxLength: 2 });
}

class Run {
  readonly values = new Map<string, string>();
  readonly seen: string[][] = [];
  #open!: () => void;
  readonly #gate = new Promise<void>((resolve) => (this.#open = resolve));

  /** @param locks none where the program has no lock: to make them takes longer than such a schedule */
  constructor(private readonly locks: RedisLockService | undefined) {}

  async actor(index: number, statements: readonly LockedStatement[]): Promise<void> {
    const seen: string[] = (this.seen[index] = []);
    let count = 0;
    const touch = async (how: 'read' | 'write' | 'add', name: string): Promise<void> => {
      const tag = `${index}${++count}`;
      await racePoint(`${how} ${name}`, { object: name, writes: how !== 'read' });
      const value = this.values.get(name) ?? '';
      if (how !== 'write') seen.push(`${tag}${name}=${value}`);
      if (how !== 'read') this.values.set(name, how === 'add' ? `${value}+${tag}` : tag);
    };
    for (const each of statements) {
      if (each.do === 'move') {
        await racePoint('move', each.as === undefined ? {} : { object: each.as });
        this.values.set('x', this.values.get('y') ?? '').set('y', `moved by ${index}`);
      } else if (each.do === 'both') await Promise.all([touch('add', each.first), touch('add', each.second)]);
      else if (each.do === 'locked') await this.locks!.using(each.resource, () => touch('add', each.object));
      else if (each.do === 'try') {
        const { ran } = await this.locks!.tryUsing(each.resource, () => touch('add', each.object));
        seen.push(`ran: ${ran}`);
      } else if (each.do === 'wait') await this.#gate;
      else if (each.do === 'open') {
        await racePoint('open', { object: 'gate' });
        this.#open();
      } else if (each.do === 'later') void touch('add', each.object);
      else await touch(each.do, each.object);
    }
    seen.push('end');
  }

  get outcome(): string {
    return JSON.stringify([['x', 'y'].map((name) => this.values.get(name)), this.seen]);
  }
}

/** The results of a search: each outcome, and the number of completed and of pruned schedules. */
export interface Reached {
  readonly outcomes: ReadonlySet<string>;
  readonly schedules: number;
  readonly stopped: number;
  /** `true` if the search is complete. */
  readonly isComplete: boolean;
}

export interface ReachOptions {
  readonly onlyNamed: boolean;
  /** One fault in each schedule: an actor is killed, or an object is overwritten. */
  readonly withFaults?: boolean;
  /** The faults of an actor. */
  readonly faults?: readonly FaultKind[];
}

/** Runs all schedules of a search, or the first `most` of them. */
export async function reach(actors: Program, search: Search, options: ReachOptions, most = Infinity): Promise<Reached> {
  const outcomes = new Set<string>();
  let schedules = 0;
  let stopped = 0;
  let isComplete = false;
  const usesLocks = actors.flat().some((each) => 'resource' in each);
  do {
    const kit = new RaceKit();
    const run = new Run(usesLocks ? kit.locks() : undefined);
    const schedule: Schedule = new Schedule({
      onlyNamed: options.onlyNamed,
      mostFaults: 1,
      mostSteps: 1_000,
      patienceMs: 0,
      time: kit,
      afterStep: (actor) => kit.afterStep(actor),
      faults: () => [
        ...(options.withFaults ? faultsOf(schedule, run) : []),
        ...kit.faults(options.faults ?? [], schedule.begunAtPoints),
      ],
    });
    kit.begin(schedule);
    actors.forEach((statements, index) => schedule.add('ABC'[index]!, () => run.actor(index, statements)));
    const ending = await schedule.run((choices) => search.choose(choices));
    if (ending === 'stopped') stopped++;
    else {
      schedules++;
      outcomes.add(`${ending} ${run.outcome}`);
    }
    isComplete = !search.next();
  } while (!isComplete && schedules < most);
  return { outcomes, schedules, stopped, isComplete };
}

function faultsOf(schedule: Schedule, run: Run): Fault[] {
  const faults: Fault[] = [...schedule.atPoints].map((actor) => ({
    id: `kill ${actor}`,
    actor,
    text: 'is killed',
    access: NOTHING,
    happen: () => schedule.kill(actor),
  }));
  if (schedule.atPoints.has('A')) {
    faults.push({
      id: 'spoil',
      actor: 'A',
      text: 'spoils',
      access: ANYTHING,
      happen: () => void run.values.set('x', '!'),
    });
  }
  return faults;
}
