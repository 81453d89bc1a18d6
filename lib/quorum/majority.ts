import { Deferred } from '../core/util/deferred.js';
import { LockStoreError, type StoreFailure } from '../core/store/lock-store.js';
import { Broadcast } from './broadcast.js';
import type { QuorumNode, QuorumTiming } from './node.js';

/** How many of so many nodes have to agree: any two majorities have a node in common. */
export function majorityOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** With so many of them saying no, less than a majority has said, or can say, yes. */
export function enoughToDeny(nodes: number): number {
  return nodes - majorityOf(nodes) + 1;
}

/** One question that is answered by yes or no. */
export interface YesNo {
  readonly send: (node: QuorumNode, index: number) => Promise<boolean>;
  /** How many have to say no for the answer to be no. @default a majority */
  readonly enoughNos?: number;
  /** What a node that says no has to say, for messages. @default 'not the owner' */
  readonly no?: string;
  /** Told of every node that says no, also when it says so late. */
  readonly refuted?: (index: number) => void;
  readonly confirmed?: (index: number) => void;
  /** Told of every node of which it is not known in time whether it has done it. */
  readonly missed?: (index: number) => void;
  /** Whether the answer is yes where it hangs on a minority of whom nobody knows what they did. @default false: that is an error */
  readonly inDoubt?: boolean;
}

/**
 * Asks all nodes, and gives what a majority answers, as soon as it has.
 *
 * @throws LockStoreError when it can be neither: it says why, node by node
 */
export function askMajority(nodes: readonly QuorumNode[], timing: QuorumTiming, question: YesNo): Promise<boolean> {
  const { send, enoughNos = majorityOf(nodes.length), no = 'not the owner', inDoubt = false } = question;
  const { refuted, confirmed, missed } = question;
  const majority = majorityOf(nodes.length);
  const verdict = new Deferred<boolean>();
  let yes = 0;
  let nos = 0;
  const broadcast = new Broadcast<boolean>(nodes, timing, {
    answered: (index, isYes) => {
      if (isYes) yes++;
      else nos++;
      (isYes ? confirmed : refuted)?.(index);
    },
    failed: (index) => missed?.(index),
    late: (index, isYes) => (isYes ? confirmed : refuted)?.(index),
    counted: () => {
      if (yes >= majority) verdict.resolve(true);
      else if (nos >= enoughNos) verdict.resolve(false);
      else if (yes + broadcast.pending < majority && nos + broadcast.pending < enoughNos) {
        const unknown = nodes.length - yes - nos;
        if (inDoubt && unknown < majority) verdict.resolve(true);
        else if (!inDoubt || broadcast.pending === 0)
          verdict.reject(quorumError(broadcast, majority, yes, (isYes) => (isYes ? undefined : no)));
      }
    },
  });
  broadcast.send(send);
  return verdict.promise;
}

/**
 * Why there is no majority: "3 of 5 needed, got 2: b timed out after 50 ms, d refused NOAUTH, e busy". Those that may still answer are
 * named apart: they are not waited for where they are too few.
 *
 * @param describe what a node has answered that is no vote; nothing for a vote
 */
export function quorumError<T>(
  { nodes, answers, failures }: Broadcast<T>,
  majority: number,
  got: number,
  describe: (answer: T) => string | undefined,
): LockStoreError {
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
  const message = `${majority} of ${nodes.length} needed, got ${got}: ${reasons.join(', ')}${rest}`;
  return new LockStoreError(overall(nodes.length, majority, failures, answers), message);
}

/** Why no majority can be asked about a resource at this moment, where that is known without asking. */
export function majorityTrouble(nodes: readonly QuorumNode[], resource: string): LockStoreError | undefined {
  const majority = majorityOf(nodes.length);
  const troubles = nodes.map((node) => node.trouble(resource));
  const reachable = troubles.filter((trouble) => !trouble).length;
  if (reachable >= majority) return undefined;
  const reasons = troubles.flatMap((trouble, index) => {
    const { name } = nodes[index]!;
    return trouble ? [`${name} ${describeFailure(trouble, name)}`] : [];
  });
  const message = `${majority} of ${nodes.length} needed, ${reachable} can be asked: ${reasons.join(', ')}`;
  return new LockStoreError('notExecuted', message);
}

function describeFailure({ failure, message }: LockStoreError, name: string): string {
  // Where it is says the name.
  const reason = message.replace(` to Redis at ${name}`, '');
  return failure === 'refused' ? `refused ${reason}` : reason;
}

/** Refused where too few are left to ever agree; not executed where nobody can have done anything. */
function overall(
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
