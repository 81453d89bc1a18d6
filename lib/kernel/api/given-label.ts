import { describeThrown, quote } from '../util/quoted.js';
import { InvalidLockOptionsError } from './errors.js';
import { HANDED_ON, isPlainObject, LABEL_BYTES } from './holder.js';
import { describeValue } from './validation.js';

export function checkLabel(option: string, label: unknown): void {
  encodeLabel(label, option);
}

/** A label as it is stored: JSON in one line, of at most 256 bytes. Without content, it is `undefined`. */
export function encodeLabel(label: unknown, option = 'label'): string | undefined {
  if (!isPlainObject(label)) {
    throw invalidLabel(option, `must be a plain object, such as { group: 'Orders.pay' }, not ${describeValue(label)}`);
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(label) as string | undefined;
  } catch (error) {
    const [why] = describeThrown(error).split('\\u000a', 1) as [string];
    throw invalidLabel(option, `must be plain JSON, but it cannot be serialized: ${quote(why, 200)}`, error);
  }
  if (text === undefined) throw invalidLabel(option, 'must be plain JSON, without a toJSON method');
  const bytes = Buffer.byteLength(text);
  if (bytes > LABEL_BYTES) {
    throw invalidLabel(
      option,
      `must have at most ${LABEL_BYTES} bytes as JSON, not ${bytes}. Put only the name of the work into the label, ` +
        'and store its data elsewhere',
    );
  }
  checkPlain(option, label);
  for (const name of ['group', 'site', 'traceparent'] as const) {
    const value = label[name];
    if (value === undefined || typeof value === 'string') continue;
    throw invalidLabel(option, `must have a string as its ${name}, not ${describeValue(value)}`);
  }
  return text === HANDED_ON ? undefined : text;
}

/** @throws InvalidLockOptionsError for what JSON leaves out or changes, such as `undefined` in a list, or a date */
function checkPlain(option: string, value: unknown): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return;
  if (typeof value === 'number' && Number.isFinite(value)) return;
  if (Array.isArray(value)) {
    for (const each of value) checkPlain(option, each);
    return;
  }
  if (!isPlainObject(value)) throw invalidLabel(option, `must be plain JSON, and ${describeValue(value)} is not`);
  if (typeof value['toJSON'] === 'function') throw invalidLabel(option, 'must be plain JSON, without a toJSON method');
  for (const each of Object.values(value)) if (each !== undefined) checkPlain(option, each);
}

function invalidLabel(option: string, what: string, cause?: unknown): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${option} ${what}.`, option, { cause });
}
