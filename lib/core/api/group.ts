import { InvalidLockOptionsError } from './errors.js';
import { describeValue } from './validation.js';

/** How long a group may be. */
export const LONGEST_GROUP = 100;
/** What a group consists of. */
export const GROUP = /^[\p{L}\p{N}_$.\-/#:() ]{1,100}$/u;

/** Makes a name of the program a group: of a method whose name is a symbol, of a job or a leadership. */
export function groupNamed(name: string): string {
  return GROUP.test(name) ? name : name.replace(/[^\p{L}\p{N}_$.\-/#:() ]/gu, '_').slice(0, LONGEST_GROUP) || '_';
}

/** @throws InvalidLockOptionsError unless it can be a group */
export function checkGroup(option: string, group: unknown): void {
  if (typeof group === 'string' && GROUP.test(group)) return;
  throw new InvalidLockOptionsError(
    `${option} must be a name of 1 to ${LONGEST_GROUP} letters, digits, spaces and _ $ . - / # : ( ), ` +
      `not ${describeValue(group)}.`,
    option,
  );
}
