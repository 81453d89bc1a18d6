import type { Logger } from '@nestjs/common';
import type { LockEventOf } from '../../../kernel/events/events.js';
import type { LockObservers } from '../../../kernel/events/observers.js';
import { describeThrown, quote } from '../../../kernel/util/quoted.js';
import { loggerOf, see } from '../../../nest/log/logger-of.js';

/** Logs results of `once` that are not stored or cannot be read: one line of each kind for each group. */
export class OnceLog {
  readonly #logger: Logger;
  readonly #logged = new Set<string>();

  constructor(observers: LockObservers, name: string) {
    this.#logger = loggerOf(name);
    observers.add(this.#observe, ['resultTooLarge', 'resultUnreadable']);
  }

  readonly #observe = (event: LockEventOf<'resultTooLarge' | 'resultUnreadable'>): void => {
    const kind = `${event.type} ${event.group}`;
    if (this.#logged.has(kind)) return;
    this.#logged.add(kind);
    this.#logger.warn(`${describe(event)} This is logged once for each group. ${see('a-result-is-not-stored')}`);
  };
}

function describe(event: LockEventOf<'resultTooLarge' | 'resultUnreadable'>): string {
  const { group, resource } = event;
  if (event.type === 'resultUnreadable') {
    return (
      `The stored result of ${quote(resource)} (group ${quote(group)}) cannot be read: ${describeThrown(event.error)}. It ` +
      'is ignored, so the work runs again. Check whether another program, or another release of your application, writes it.'
    );
  }
  return (
    `A result of ${quote(resource)} (group ${quote(group)}) was not stored: it has ${event.bytes} bytes, more than ` +
    `maxBytes (${event.maxBytes}). Each call runs the work again. Return less, such as a key of a larger store, or raise ` +
    'maxBytes.'
  );
}
