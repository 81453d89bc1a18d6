// Semantics of Lua that differ from JavaScript, for the scripts in scripts.generated.ts. nil is undefined.

/** A value of a script, which is untyped. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Value = any;

/** An error of Redis, as a script gets it from pcall. */
export class RedisError extends Error {
  constructor(readonly err: string) {
    super(err);
  }
}

/** Truthiness of Lua: 0 and '' are true. */
export function is(value: Value): boolean {
  return value !== undefined && value !== false;
}

/** value or other */
export function firstTruthy(value: Value, other: Value): Value {
  return is(value) ? value : other;
}

/** tonumber(text) */
export function number(text: Value): Value {
  if (typeof text === 'number') return text;
  const value = typeof text === 'string' && text.trim() !== '' ? Number(text) : NaN;
  return Number.isNaN(value) ? undefined : value;
}

/** string.format('%.0f', value) */
export function formatInteger(value: Value): Value {
  return Number(value).toFixed(0);
}

/** string.format('%.7s', value) */
export function cut(value: Value, size: number): string {
  return String(value).slice(0, size);
}

/** string.match, if the script uses one value: the first capture, or the whole match. */
export function match(text: Value, pattern: RegExp): Value {
  const found = pattern.exec(text);
  return found === null ? undefined : found.length > 1 ? found[1] : found[0];
}

/** string.match: all captures. */
export function captures(text: Value, pattern: RegExp): Value[] {
  const found = pattern.exec(text);
  return found === null ? [] : found.slice(1);
}

/** string.gsub: the text with its matches replaced, and their number. */
export function replaced(text: Value, pattern: RegExp, by: string): [string, number] {
  const found = pattern.exec(text);
  return found === null ? [text, 0] : [text.slice(0, found.index) + by + text.slice(found.index + found[0].length), 1];
}

/** redis.pcall: the reply, or the error. */
export function tried(command: () => Value): Value {
  try {
    return command();
  } catch (error) {
    if (error instanceof RedisError) return error;
    throw error;
  }
}

/** pcall: true and what the function returns, or false and the error. */
export function attempt(call: () => Value): Value[] {
  try {
    return [true, ...(call() ?? [])];
  } catch (error) {
    if (error instanceof RedisError) return [false, error];
    throw error;
  }
}
