import { OTHER_GROUP } from '../core/events/groups.js';

/** As many as there are groups of locks. */
const MAX_NAMES = 200;

/**
 * One value for each name. Names that come with calls get the places that the registered names leave. All further names
 * share one value, `_other`.
 */
export class BoundedNames<T> {
  readonly #known = new Map<string, T>();

  constructor(private readonly create: (name: string) => T) {}

  /** For a name that the program has. */
  register(name: string): T {
    let known = this.#known.get(name);
    if (known === undefined) this.#known.set(name, (known = this.create(name)));
    return known;
  }

  of(name: string): T {
    return this.#known.get(name) ?? this.register(this.#known.size < MAX_NAMES ? name : OTHER_GROUP);
  }
}
