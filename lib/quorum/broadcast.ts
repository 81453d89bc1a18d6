import type { Alarm } from '../core/util/alarms.js';
import { LockStoreError } from '../core/store/lock-store.js';
import type { QuorumNode, QuorumTiming } from './node.js';

/** Who counts the votes. The index is that of the node. */
export interface BroadcastListener<T> {
  answered(index: number, answer: T): void;
  /** It will not answer, or has not in time. */
  failed(index: number, error: LockStoreError): void;
  /** An answer after it had counted as failed. */
  late?(index: number, answer: T): void;
  /** Called after each of `answered` and `failed`. */
  counted(): void;
}

/** A timer that is later than this is so because nothing else ran either. */
const LATE_MS = 5;

/** One command to all nodes at once. None of them is waited for longer than a moment, and each is heard out all the same. */
export class Broadcast<T> implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  /** What each node has answered. */
  readonly answers: (T | undefined)[];
  /** Why a node has not. */
  readonly failures: (LockStoreError | undefined)[];
  #pending: number;
  #isExtended = false;

  constructor(
    readonly nodes: readonly QuorumNode[],
    private readonly timing: QuorumTiming,
    private readonly listener: BroadcastListener<T>,
  ) {
    this.answers = nodes.map(() => undefined);
    this.failures = nodes.map(() => undefined);
    this.#pending = nodes.length;
  }

  /** How many may still answer in time. */
  get pending(): number {
    return this.#pending;
  }

  send(command: (node: QuorumNode, index: number) => Promise<T>): void {
    this.timing.alarms.setIn(this, this.timing.timeoutMs);
    this.nodes.forEach((node, index) => {
      node.ask(
        () => command(node, index),
        (answer) => this.#answered(index, answer),
        (error) => this.#failed(index, error),
      );
    });
  }

  /** The time is over. Where this process stood still, what has come meanwhile is read first. */
  ring(): void {
    const isLate = this.timing.clock.now() - this.dueAt > LATE_MS;
    if (isLate && !this.#isExtended) {
      this.#isExtended = true;
      this.timing.alarms.setIn(this, LATE_MS);
      return;
    }
    const error = new LockStoreError('unknown', `timed out after ${Math.round(this.timing.timeoutMs)} ms`);
    this.nodes.forEach((_, index) => {
      if (this.#isPending(index)) this.#failed(index, error);
    });
  }

  #isPending(index: number): boolean {
    return this.answers[index] === undefined && this.failures[index] === undefined;
  }

  #answered(index: number, answer: T): void {
    if (!this.#isPending(index)) {
      this.listener.late?.(index, answer);
      return;
    }
    this.answers[index] = answer;
    this.listener.answered(index, answer);
    this.#count();
  }

  #failed(index: number, error: LockStoreError): void {
    if (!this.#isPending(index)) return;
    this.failures[index] = error;
    this.listener.failed(index, error);
    this.#count();
  }

  #count(): void {
    if (--this.#pending === 0) this.timing.alarms.cancel(this);
    this.listener.counted();
  }
}
