import type { Redis } from 'ioredis';
import { Deferred } from '../../kernel/util/promises.js';
import type { LockStoreError } from '../../kernel/store/store-error.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';

/** A script whose outcome counts only when enough replicas have its changes. */
export class DurableCommand<T = unknown> {
  readonly queuedAt = performance.now();
  readonly #outcome = new Deferred<T>();
  /**
   * unconfirmed: executed, and not yet confirmed by the replicas. settled: here, or by the server it was redirected to.
   */
  #state: 'new' | 'sent' | 'unconfirmed' | 'settled' = 'new';
  #value: T | undefined;
  #answer: Promise<void> = Promise.resolve();

  /**
   * @param fail turns an error of ioredis into the outcome
   * @param executed called when the command was executed, or will never be
   */
  constructor(
    private readonly call: ScriptCall<T>,
    private readonly scripts: ScriptSender,
    private readonly fail: (error: unknown) => Promise<T>,
    private readonly executed: () => void,
  ) {}

  get outcome(): Promise<T> {
    return this.#outcome.promise;
  }

  /** Resolves when the command was answered or redirected. Never rejects. */
  get answer(): Promise<void> {
    return this.#answer;
  }

  get isUnconfirmed(): boolean {
    return this.#state === 'unconfirmed';
  }

  /** Sends the command at the end of this turn of the event loop. */
  send(client: Redis): void {
    this.#state = 'sent';
    const call = { ...this.call, durable: undefined, lazily: true, read: (reply: unknown) => this.#answered(reply) };
    this.#answer = this.scripts.send<void>(client, call, this.#failed).catch((error: unknown) => {
      this.#settle(Promise.reject(error));
    });
  }

  confirm(): void {
    this.#settle(this.#value!);
  }

  /** Too few replicas have the changes, as far as is known. */
  doubt(error: LockStoreError): void {
    const { otherwise } = this.call.durable!;
    this.#settle(otherwise ? otherwise(this.#value!, error) : Promise.reject(error));
  }

  drop(error: LockStoreError): void {
    this.#settle(Promise.reject(error));
  }

  #answered(reply: unknown): void {
    this.executed();
    const value = this.call.read(reply);
    if (!this.call.durable!.isNeeded(value)) return this.#settle(value);
    this.#value = value;
    this.#state = 'unconfirmed';
  }

  /** If the command is redirected to another server, that server settles it. */
  readonly #failed = async (error: unknown): Promise<void> => {
    this.#settle((async () => this.fail(error))());
  };

  #settle(outcome: T | Promise<T>): void {
    this.#state = 'settled';
    this.#outcome.resolve(outcome as T);
  }
}
