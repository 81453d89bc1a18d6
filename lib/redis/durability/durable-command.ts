import type { Redis } from 'ioredis';
import { Deferred } from '../../core/util/promises.js';
import type { LockStoreError } from '../../core/store/lock-store.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';

/** A script whose outcome counts only once replicas have it. */
export class DurableCommand<T = unknown> {
  readonly queuedAt = performance.now();
  readonly #outcome = new Deferred<T>();
  /** Sent, executed and not confirmed, or settled: here, or wherever it was sent on to. */
  #state: 'new' | 'sent' | 'unconfirmed' | 'settled' = 'new';
  #value: T | undefined;
  #answer: Promise<void> = Promise.resolve();

  /**
   * @param fail what to make of what ioredis rejects with
   * @param executed called when it was executed, or will never be
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

  /** Resolves when it was answered, or sent on. Never rejects. */
  get answer(): Promise<void> {
    return this.#answer;
  }

  get isUnconfirmed(): boolean {
    return this.#state === 'unconfirmed';
  }

  /** Leaves at the end of the tick. */
  send(client: Redis): void {
    this.#state = 'sent';
    const call = { ...this.call, durable: undefined, lazily: true, read: (reply: unknown) => this.#answered(reply) };
    this.#answer = this.scripts.send<void>(client, call, this.#failed).catch((error: unknown) => {
      this.#settle(Promise.reject(error));
    });
  }

  /** Enough replicas have what it did. */
  confirm(): void {
    this.#settle(this.#value!);
  }

  /** Too few have it. */
  doubt(error: LockStoreError): void {
    const { otherwise } = this.call.durable!;
    this.#settle(otherwise ? otherwise(this.#value!, error) : Promise.reject(error));
  }

  /** It was never sent. */
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

  /** What another server makes of it is settled there. */
  readonly #failed = async (error: unknown): Promise<void> => {
    this.#settle((async () => this.fail(error))());
  };

  #settle(outcome: T | Promise<T>): void {
    this.#state = 'settled';
    this.#outcome.resolve(outcome as T);
  }
}
