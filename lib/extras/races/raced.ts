import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import {
  checkIsObject,
  describeValue,
  Option,
  type OptionsOf,
  OptionTable,
  wrongValue,
} from '../../kernel/api/validation.js';
import { type Access, ANYTHING, currentActor } from './schedule/race-context.js';
import { brief } from './schedule/story.js';

/** Options of {@link racePoint}. */
export interface RacePointOptions {
  /**
   * The only shared object that the actor touches between this point and its next one. The step's order among steps on
   * other objects then makes no difference, so fewer orders are tried.
   *
   * @allowed text that is not empty
   * @default none: the actor could touch any object, so the step is tried in every order
   */
  readonly object?: string;
  /**
   * `false` if the code only reads the object: the order of two such steps makes no difference.
   *
   * @default true
   */
  readonly writes?: boolean;
}

export const RACE_POINT_OPTIONS = new OptionTable({
  object: Option.text(/[^]/, 'text that is not empty'),
  writes: Option.flag().default(true),
} satisfies OptionsOf<RacePointOptions>);

/**
 * Marks a place in the code of an actor where another actor may run first. {@link exploreRaces} tries the steps between
 * such points in different orders. Outside of an exploration, the promise resolves at once.
 *
 * @param name describes the code that follows, in the steps of a reported race: `'read the stock'`
 * @throws InvalidLockOptionsError if an option is invalid; only during an exploration
 */
export async function racePoint(name: string, options?: RacePointOptions): Promise<void> {
  const context = currentActor();
  if (context === undefined) return;
  await context.schedule.point(context.actor, name, accessOf(name, options));
}

function accessOf(name: string, options: RacePointOptions = {}): Access {
  RACE_POINT_OPTIONS.check(`racePoint(${JSON.stringify(name)})`, options);
  const { object, writes = RACE_POINT_OPTIONS.defaults.writes } = options;
  return object === undefined ? ANYTHING : { object, writes };
}

/** Options of {@link raced}. */
export interface RacedOptions<T> {
  /**
   * The name of the object in the steps of a race that is reported.
   *
   * @allowed text that is not empty
   * @default the name of the object's class
   */
  readonly name?: string;
  /**
   * The methods that change nothing, so the order of their calls makes no difference.
   *
   * @allowed names of methods
   * @default none
   */
  readonly reads?: readonly (keyof T & string)[];
  /**
   * `(method, args) => string`: names the part of the object that a call touches, such as the id of a row. The order of
   * calls that touch different parts makes no difference. If it returns `undefined`, the call could
   * touch anything, so its order always matters.
   *
   * @default the whole object, as one part
   */
  readonly object?: (method: keyof T & string, args: readonly unknown[]) => string | undefined;
}

export const RACED_OPTIONS = new OptionTable({
  name: Option.text(/[^]/, 'text that is not empty'),
  reads: Option.checked<readonly never[]>(),
  object: Option.callback<NonNullable<RacedOptions<object>['object']>>(),
} satisfies OptionsOf<RacedOptions<object>>);

/**
 * Wraps a dependency, such as a repository, so that each method call is a point of {@link exploreRaces}, where another
 * actor may run first. A reported race shows the arguments and the result. Outside of an exploration, calls pass
 * through unchanged. Properties that are not functions always do.
 *
 * You promise that the code after a call, up to the actor's next point, touches nothing else that other actors see. If
 * it does, for example a cache in a field, return `undefined` from `object`.
 *
 * @throws InvalidLockOptionsError if the target is not an object, or an option is invalid
 */
export function raced<T extends object>(target: T, options: RacedOptions<T> = {}): T {
  check(target, options);
  const { reads = [] } = options;
  const name = options.name ?? nameOf(target);
  const accessOf = (method: string, args: readonly unknown[]): Access => {
    const object = options.object ? options.object(method as keyof T & string, args) : '';
    if (object === undefined) return ANYTHING;
    return { object: object === '' ? name : `${name} ${object}`, writes: !reads.includes(method as keyof T & string) };
  };
  const methods = new Map<unknown, unknown>();
  const wrap = (method: string, original: (...args: unknown[]) => unknown): unknown => {
    const known = methods.get(original);
    if (known) return known;
    const wrapped = function (this: unknown, ...args: unknown[]): unknown {
      const self = this === proxy ? target : this;
      const context = currentActor();
      if (context === undefined) return original.apply(self, args);
      return callAtPoint(context, `${name}.${method}(${args.map(brief).join(', ')})`, accessOf(method, args), () =>
        original.apply(self, args),
      );
    };
    methods.set(original, wrapped);
    return wrapped;
  };
  const proxy: T = new Proxy(target, {
    get(object, property) {
      const value: unknown = Reflect.get(object, property, object);
      const isMethod = typeof value === 'function' && typeof property === 'string' && property !== 'constructor';
      return isMethod ? wrap(property, value as (...args: unknown[]) => unknown) : value;
    },
  });
  return proxy;
}

async function callAtPoint(
  { schedule, actor }: NonNullable<ReturnType<typeof currentActor>>,
  text: string,
  access: Access,
  call: () => unknown,
): Promise<unknown> {
  const note = await schedule.point(actor, text, access);
  try {
    const result = await call();
    if (result !== undefined) note.add(` -> ${brief(result)}`);
    return result;
  } catch (error) {
    note.add(` threw ${brief(error)}`);
    throw error;
  }
}

function nameOf(target: object): string {
  const { name } = target.constructor ?? {};
  return name === undefined || name === '' || name === 'Object' ? 'object' : name;
}

function check<T extends object>(target: T, options: RacedOptions<T>): void {
  checkIsObject('the first argument of raced', target);
  RACED_OPTIONS.check('raced', options);
  const { reads = [] } = options;
  if (!Array.isArray(reads)) {
    throw wrongValue('reads', 'an array of names of methods', reads);
  }
  const other = reads.find((method) => typeof (target as Record<string, unknown>)[method] !== 'function');
  if (other === undefined) return;
  throw new InvalidLockOptionsError(
    `reads must name methods of the ${nameOf(target)}, and ${describeValue(other)} is not one.`,
    'reads',
  );
}
