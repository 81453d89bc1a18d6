import { MAX_GROUPS } from '../core/events/groups.js';
import { OTHER_GROUP } from '../core/api/label.js';
import { escapeText } from '../core/util/quoted.js';

/**
 * One value for each name. Names that come with calls get the places that the registered names leave. All further names
 * share one value, `_other`.
 */
export class BoundedNames<T> {
  readonly #known = new Map<string, T>();

  constructor(private readonly create: (name: string) => T) {}

  /** For a name that the program has. */
  register(name: string): T {
    // Exporters print control characters as they are, and so do tools that read what was scraped.
    const shown = escapeText(name);
    let known = this.#known.get(shown);
    if (known === undefined) this.#known.set(shown, (known = this.create(shown)));
    return known;
  }

  of(name: string): T {
    const known = this.#known.get(name) ?? this.#known.get(escapeText(name));
    return known ?? this.register(this.#known.size < MAX_GROUPS ? name : OTHER_GROUP);
  }
}
