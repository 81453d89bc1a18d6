import { toStoreError } from './failures.js';
import { decodeResource } from './keys.js';
import type { RedisConnection } from './redis-connection.js';

const RETRY_PAUSE_MS = 250;

/** The channel on which this instance is woken: one subscription, made at start-up, whatever it waits for. */
export class Inbox {
  readonly #listeners: ((resource: string | undefined) => void)[] = [];
  readonly #opened: Promise<void>;
  #refusal: string | undefined;

  constructor(connection: RedisConnection, channel: string) {
    const { commands, subscriber } = connection;
    subscriber.on('message', (_channel: string, encoded: string) => this.#tell(decodeResource(encoded)));
    this.#opened = new Promise((resolve) => {
      let listening = false;
      const check = (): void => {
        if (listening && commands.status === 'ready') resolve();
      };
      const settle = (refusal?: string): void => {
        this.#refusal = refusal;
        listening = true;
        this.#tell(undefined);
        check();
      };
      // Messages of the time in between are lost: whoever waits has to look for himself now.
      const subscribe = (): void => {
        // On a connection that broke, the next one begins anew.
        if (subscriber.status !== 'ready') return;
        subscriber.subscribe(channel).then(
          () => settle(),
          (error: unknown) => {
            const { failure, message } = toStoreError(error);
            if (failure === 'refused') settle(message);
            // Such as BUSY, while a long script runs.
            else setTimeout(subscribe, RETRY_PAUSE_MS).unref();
          },
        );
      };
      subscriber.on('ready', subscribe);
      commands.on('ready', () => {
        this.#tell(undefined);
        check();
      });
    });
  }

  /** Why Redis does not let this instance listen. Then its waiters find out by their heartbeat, more slowly. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  onMessage(listener: (resource: string | undefined) => void): void {
    this.#listeners.push(listener);
  }

  /** Resolves `true` when it is open, or `false` after `patienceMs`. */
  async untilOpen(patienceMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), patienceMs);
    });
    const opened = await Promise.race([this.#opened.then(() => true), timeout]);
    clearTimeout(timer);
    return opened;
  }

  #tell(resource: string | undefined): void {
    for (const listener of this.#listeners) listener(resource);
  }
}
