import { describeValue } from '../../core/api/validation.js';
import { quoteSome } from '../../core/util/quoted.js';
import { Refusal } from './reply.js';

const LONGEST_NAME = 1_024;
const LONGEST_REASON = 200;

/** The fields of the body of an action. */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;

  /** @throws Refusal for what is no object, and for fields that the action does not have */
  constructor(body: unknown, names: readonly string[]) {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      throw new Refusal('BAD_REQUEST', `The body must be a JSON object, not ${describeValue(body)}.`);
    }
    const unknown = Object.keys(body).filter((name) => !names.includes(name));
    if (unknown.length > 0) {
      throw new Refusal(
        'BAD_REQUEST',
        `The body has unknown fields: ${quoteSome(unknown)}. It may have ${names.join(', ')}.`,
      );
    }
    this.#values = body as Record<string, unknown>;
  }

  optional(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
  }

  /** @throws Refusal */
  name(name: string): string {
    const value = this.optional(name);
    if (typeof value === 'string' && value !== '' && value.length <= LONGEST_NAME) return value;
    throw new Refusal('BAD_REQUEST', `${name} must be a name of 1 to ${LONGEST_NAME} characters.`);
  }

  /** @throws Refusal */
  integer(name: string, largest: number): number {
    const value = this.optional(name);
    if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= largest) return value as number;
    throw new Refusal('BAD_REQUEST', `${name} must be an integer from 1 to ${largest}, not ${describeValue(value)}.`);
  }

  /** Why, without the white space around it; `undefined` where none is stated. @throws Refusal */
  reason(): string | undefined {
    const value = this.optional('reason');
    if (value === undefined || value === null) return undefined;
    const reason = typeof value === 'string' ? value.trim() : '';
    if (typeof value !== 'string' || reason.length > LONGEST_REASON) {
      throw new Refusal('BAD_REQUEST', `reason must be a text of at most ${LONGEST_REASON} characters.`);
    }
    return reason === '' ? undefined : reason;
  }
}
