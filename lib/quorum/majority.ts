import { Deferred } from '../kernel/util/promises.js';
import { LockStoreError, type StoreFailure } from '../kernel/store/store-error.js';
import type { QuorumNode, QuorumNodes } from './node.js';
import { type Alarm, LATE_MS } from '../kernel/util/alarms.js';

/** Receives the answers to a broadcast, by the index of the node. */
export interface BroadcastListener<T> {
  answered?(index: number, answer: T): void;
  /** The node will not answer, or has not answered in time. */
  failed?(index: number, error: LockStoreError): void;
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
  /** The number of nodes that may still answer in time. */
  pending: number;
  #isExtended = false;

  constructor(
    readonly quorum: QuorumNodes,
    private readonly listener: BroadcastListener<T>,
  ) {
    const { nodes } = quorum;
    this.answers = nodes.map(() => undefined);
    this.failures = nodes.map(() => undefined);
    this.pending = nodes.length;
  }

  send(command: (node: QuorumNode, index: number) => Promise<T>): void {
    this.quorum.alarms.setIn(this, this.quorum.timeoutMs);
    this.quorum.nodes.forEach((node, index) => {
      node.ask(
        () => command(node, index),
        (answer) => this.#answered(index, answer),
        (error) => this.#failed(index, error),
      );
    });
  }

  /** The time has passed. After a blocked event loop, pending answers are read first. */
  ring(): void {
    const isLate = this.quorum.clock.now() - this.dueAt > LATE_MS;
    if (isLate && !this.#isExtended) {
      this.#isExtended = true;
      this.quorum.alarms.setIn(this, LATE_MS);
      return;
    }
    const error = new LockStoreError('unknown', `timed out after ${Math.round(this.quorum.timeoutMs)} ms`);
    this.quorum.nodes.forEach((_, index) => {
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
    this.listener.answered?.(index, answer);
    this.#count();
  }

  #failed(index: number, error: LockStoreError): void {
    if (!this.#isPending(index)) return;
    this.failures[index] = error;
    this.listener.failed?.(index, error);
    this.#count();
  }

  #count(): void {
    if (--this.pending === 0) this.quorum.alarms.cancel(this);
    this.listener.counted();
  }
}

/** The size of a majority of this many nodes: any two majorities have a node in common. */
export function majorityOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** When this many nodes answer no, the others are fewer than a majority. */
export function enoughToDeny(nodes: number): number {
  return nodes - majorityOf(nodes) + 1;
}

/** A question to all nodes that is answered by yes or no. */
interface YesNo {
  readonly send: (node: QuorumNode, index: number) => Promise<boolean>;
  /** The number of nodes whose no decides. @default a majority */
  readonly enoughNos?: number;
  /** The meaning of a no, for messages. @default 'not the owner' */
  readonly no?: string;
  /** Called for each yes, even a late one. */
  readonly confirmed?: (index: number) => void;
  /** Called for each no, even a late one. */
  readonly refuted?: (index: number) => void;
  /** Called for each node that has failed or has not answered in time. */
  readonly missed?: (index: number) => void;
  /** The answer if it depends on a minority that has not answered. @default false: an error */
  readonly inDoubt?: boolean;
}

/**
 * Asks all nodes. Resolves as soon as the answer of a majority is certain.
 *
 * @throws LockStoreError when there is no such answer; the message has the reason for each node
 */
export function askMajority(quorum: QuorumNodes, question: YesNo): Promise<boolean> {
  const { nodes, majority } = quorum;
  const { send, enoughNos = majority, no = 'not the owner', inDoubt = false } = question;
  const { refuted, confirmed, missed } = question;
  const result = new Deferred<boolean>();
  let yes = 0;
  let nos = 0;
  const broadcast = new Broadcast<boolean>(quorum, {
    answered: (index, isYes) => {
      if (isYes) yes++;
      else nos++;
      (isYes ? confirmed : refuted)?.(index);
    },
    failed: (index) => missed?.(index),
    late: (index, isYes) => (isYes ? confirmed : refuted)?.(index),
    counted: () => {
      if (yes >= majority) result.resolve(true);
      else if (nos >= enoughNos) result.resolve(false);
      else if (yes + broadcast.pending < majority && nos + broadcast.pending < enoughNos) {
        const unknown = nodes.length - yes - nos;
        if (inDoubt && unknown < majority) result.resolve(true);
        else if (!inDoubt || broadcast.pending === 0)
          result.reject(quorumError(broadcast, yes, (isYes) => (isYes ? undefined : no)));
      }
    },
  });
  broadcast.send(send);
  return result.promise;
}

/**
 * Explains why there is no majority: "3 of 5 nodes needed, got 2: b timed out after 50 ms, d refused NOAUTH, e busy". Nodes
 * that may still answer come last: they are too few to wait for.
 *
 * @param describe describes an answer that is no vote; `undefined` for a vote
 */
export function quorumError<T>(
  { quorum, answers, failures }: Broadcast<T>,
  got: number,
  describe: (answer: T) => string | undefined,
): LockStoreError {
  const { nodes, majority } = quorum;
  const reasons = nodes.flatMap(({ name }, index) => {
    const failure = failures[index];
    const answer = answers[index];
    if (failure) return [`${name} ${describeFailure(failure, name)}`];
    const reason = answer === undefined ? undefined : describe(answer);
    return reason ? [`${name} ${reason}`] : [];
  });
  const open = nodes.filter((_, index) => failures[index] === undefined && answers[index] === undefined);
  const rest =
    open.length > 0 ? `; ${open.map(({ name }) => name).join(', ')} had not answered yet, too few to matter` : '';
  const message = `${majority} of ${nodes.length} nodes needed, got ${got}: ${reasons.join(', ')}${rest}`;
  return new LockStoreError(failureOf(nodes.length, majority, failures, answers), message);
}

export function majorityTrouble({ nodes, majority }: QuorumNodes, resource: string): LockStoreError | undefined {
  const troubles = nodes.map((node) => node.trouble(resource));
  const reachable = troubles.filter((trouble) => !trouble).length;
  if (reachable >= majority) return undefined;
  const reasons = troubles.flatMap((trouble, index) => {
    const { name } = nodes[index]!;
    return trouble ? [`${name} ${describeFailure(trouble, name)}`] : [];
  });
  const message = `${majority} of ${nodes.length} nodes needed, ${reachable} can be reached: ${reasons.join(', ')}`;
  return new LockStoreError('notExecuted', message);
}

function describeFailure({ failure, message }: LockStoreError, name: string): string {
  // The name of the node has the address.
  const reason = message.replace(` to Redis at ${name}`, '');
  // A reply of Redis, such as "NOAUTH ...", is no sentence. "not connected (WRONGPASS ...)" is one.
  return failure === 'refused' && /^[A-Z]+ /.test(reason) ? `refused ${reason}` : reason;
}

/** 'refused' if too few nodes are left for a majority; 'notExecuted' if no node can have executed the command. */
function failureOf(
  nodes: number,
  majority: number,
  failures: readonly (LockStoreError | undefined)[],
  answers: readonly unknown[],
): StoreFailure {
  const refused = failures.filter((error) => error?.failure === 'refused').length;
  if (nodes - refused < majority) return 'refused';
  const isUntouched = answers.every((answer) => answer === undefined);
  return isUntouched && failures.every((error) => error?.failure !== 'unknown') ? 'notExecuted' : 'unknown';
}
