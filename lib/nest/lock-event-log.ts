import { Logger } from '@nestjs/common';
import { quoteResource } from '../core/errors.js';
import type { LockEvent } from '../core/events.js';

/** Logs what somebody should look at. Everything else is for the observers. */
export class LockEventLog {
  readonly #logger = new Logger('RedisLock');

  readonly observe = (event: LockEvent): void => {
    switch (event.type) {
      case 'lost':
        this.#logger.warn(
          `Lost the lease of ${quoteResource(event.resource)} (${event.reason}); its signal has aborted.`,
        );
        return;
      case 'releaseFailed':
        this.#logger.warn(`${event.error.message}. It is tried again until the lease has expired by itself.`);
        return;
      case 'renewalFailed':
        this.#logger.warn(`${event.error.message}. It is tried again until the lease ends.`);
        return;
      default:
    }
  };

  unreachable(trouble: string): void {
    this.#logger.warn(
      `The application starts, but it is ${trouble}. It goes on trying to connect; until then, locks fail with LockUnavailableError.`,
    );
  }

  noInbox(why: string): void {
    this.#logger.warn(`Waiters cannot be told by message and ask again every second instead: ${why}.`);
  }
}
