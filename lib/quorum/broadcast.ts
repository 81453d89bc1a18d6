import { type Alarm, LATE_MS } from '../core/util/alarms.js';
import { LockStoreError } from '../core/store/store-error.js';
import type { QuorumNode, QuorumTiming } from './node.js';

/** Receives the answers to a broadcast. The index is that of the node. */
export interface BroadcastListener<T> {
  answered(index: number, answer: T): void;
  /** The node will not answer, or has not answered in time. */
  failed(index: number, error: LockStoreError): void;
  /** The node has answered after it had counted as failed. */
  late?(index: number, answer: T): void;
  /** Called after each `answered` and each `failed`. */
  counted(): void;
}

/**
 * One command to all nodes at once. Each node has the same short time to answer; a later answer is still passed to the
 * listener.
 */
export class Broadcast<T> implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  /** The answer of each node that has answered in time. */
  readonly answers: (T | undefined)[];
  /** Why each of the other nodes has not. */
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

  /** The number of nodes that may still answer in time. */
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

  /** The time is over. If this process stood still, the answers that came meanwhile are read first. */
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
