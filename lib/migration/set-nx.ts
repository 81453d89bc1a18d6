import type { ForeignLock } from '../core/api/foreign-lock.js';
import { InvalidLockOptionsError } from '../core/api/errors.js';
import { describeThrown } from '../core/util/quoted.js';
import { MAX_LEASE_MS } from '../core/api/lock-options.js';
import { callback, checked, milliseconds, type OptionsOf, OptionTable } from '../core/api/validation.js';
import {
  describeKey,
  FOREIGN_CLIENT,
  type ForeignClientOption,
  type ForeignKey,
  foreignKey,
  isKey,
  keyLock,
} from './key-lock.js';

/** What {@link setNx} takes. */
export interface SetNxOptions extends ForeignClientOption {
  /**
   * The key that the old code sets: one text, or a function that returns it for each of our resources. Where the
   * function returns `undefined`, only our lock is taken.
   *
   * @allowed text, or a function
   */
  key: string | ForeignKey;
  /**
   * Makes the value of the key from an id that no other process has. The value has to contain the id: a process knows
   * its own key by it. Needed only where a program reads the value, for example to show who has the lock.
   *
   * @default the id itself
   */
  value?: (id: string) => string;
  /**
   * How long the key stays at least, counted from when it was set, also after the release. For old code that sets the
   * key with an expiry and never deletes it, so that instances whose clocks differ run a job once: its expiry.
   *
   * @allowed 0 ms to 24 h
   * @default 0
   */
  keepMs?: number;
}

export const SET_NX_OPTIONS = new OptionTable({
  client: FOREIGN_CLIENT.required(),
  key: checked<SetNxOptions['key']>(checkKeyOption).required(),
  value: callback<NonNullable<SetNxOptions['value']>>(),
  keepMs: milliseconds(0, MAX_LEASE_MS).default(0),
} satisfies OptionsOf<SetNxOptions>);

/**
 * A lock that the old code takes by hand with `SET key value NX PX ms` (or `EX`), for the option `alsoLock`.
 *
 * @throws InvalidLockOptionsError
 */
export function setNx(options: SetNxOptions): ForeignLock {
  SET_NX_OPTIONS.check('setNx', options);
  const { client, key, value, keepMs = SET_NX_OPTIONS.defaults.keepMs } = options;
  return keyLock({
    library: 'SET NX',
    clients: [client],
    keyOf: typeof key === 'string' ? () => key : foreignKey('setNx', key),
    value: value && ((id) => valueOf(id, value)),
    keepMs,
  });
}

function checkKeyOption(option: string, key: unknown): void {
  if (typeof key === 'function' || isKey(key)) return;
  throw new InvalidLockOptionsError(
    `${option} of setNx() must be the key that the old code sets, or a function that returns it, ` +
      `not ${describeKey(key)}.`,
    option,
  );
}

function valueOf(id: string, make: (id: string) => unknown): string {
  let value: unknown;
  try {
    value = make(id);
  } catch (error) {
    const why = describeThrown(error);
    throw new InvalidLockOptionsError(`The function value of setNx() threw: ${why}`, 'value', { cause: error });
  }
  if (typeof value === 'string' && value.includes(id)) return value;
  throw new InvalidLockOptionsError(
    'The function value of setNx() must return a text that contains the id it was given: two processes with the same ' +
      'value would take each other for the holder.',
    'value',
  );
}
