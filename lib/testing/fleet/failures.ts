import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { checkResource, jobResource } from '../../kernel/api/resource.js';
import { checkOneOf, describeValue } from '../../kernel/api/validation.js';
import { LockStoreError, type StoreFailure } from '../../kernel/store/store-error.js';
import { isError } from '../../kernel/util/objects.js';
import { escapeText } from '../../kernel/util/quoted.js';
import type { Fate, TestCommand, Verb } from './commands.js';

/** The commands that a test can make fail: to acquire, renew or release a lock, or to claim a tick of a job. */
export type FailingVerb = 'acquire' | 'renew' | 'release' | 'claim';

/**
 * The failure of a command: an error with which Redis rejects it, or how far the command gets. `notExecuted`: it has no
 * effect, and is sent again. `unknown`: it is executed, and its reply is lost. `refused`: Redis will never execute it.
 */
export type TestFailure = Error | StoreFailure;

const VERBS: readonly FailingVerb[] = ['acquire', 'renew', 'release', 'claim'];
const KINDS: readonly StoreFailure[] = ['notExecuted', 'unknown', 'refused'];

/** The commands of a kind. A call that takes a lock over from another one of its process rotates it. */
const COMMANDS: Record<FailingVerb, readonly Verb[]> = {
  acquire: ['acquire', 'rotate'],
  renew: ['renew'],
  release: ['release', 'retain'],
  claim: ['claim'],
};

export interface PlannedFailure {
  /** The call that has planned it, as code. */
  readonly text: string;
  readonly fate: Fate;
  /** Returns true if it applies to this command. */
  isOf(command: Pick<TestCommand, 'verb' | 'resource'>): boolean;
}

/** @param resource the only resource whose commands fail; for a claim, also the name of a job */
export function planFailure(verb: FailingVerb, failure: TestFailure, resource: string | undefined): PlannedFailure {
  checkOneOf('the first argument of failNext', verb, VERBS);
  const fate = fateOf(verb, failure);
  const verbs = COMMANDS[verb];
  const parts = [`'${verb}'`, isError(failure) ? `${failure.name}: ${failure.message}` : `'${failure}'`];
  if (resource === undefined) {
    return { text: textOf(parts), fate, isOf: (command) => verbs.includes(command.verb) };
  }
  const name = checkResource(resource, 'failNext');
  const names = verb === 'claim' ? [name, jobResource(name)] : [name];
  const isOf: PlannedFailure['isOf'] = (command) => verbs.includes(command.verb) && names.includes(command.resource);
  return { text: textOf([...parts, `'${name}'`]), fate, isOf };
}

function textOf(parts: readonly string[]): string {
  return `failNext(${parts.map(escapeText).join(', ')})`;
}

function fateOf(verb: FailingVerb, failure: TestFailure): Fate {
  if (isError(failure)) {
    if (failure.name === 'LockStoreError') return () => Promise.reject(failure);
    const refused = new LockStoreError('refused', failure.message);
    refused.cause = failure;
    return () => Promise.reject(refused);
  }
  if (!KINDS.includes(failure)) {
    const option = 'the second argument of failNext';
    throw new InvalidLockOptionsError(
      `${option} must be an Error, or one of ${KINDS.map((kind) => `'${kind}'`).join(', ')}, not ${describeValue(failure)}.`,
      option,
    );
  }
  const error = new LockStoreError(failure, `a test has called failNext('${verb}', '${failure}')`);
  return async (execute) => {
    if (failure === 'unknown') await execute();
    throw error;
  };
}
