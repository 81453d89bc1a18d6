import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import { inspect } from 'node:util';

/** What is published while an operation lasts. The names of the channels are `tracing:<name>:start` and so on. */
export const ACQUIRE_CHANNEL = tracingChannel('nestjs-redis-lock:acquire');
export const HOLD_CHANNEL = tracingChannel('nestjs-redis-lock:hold');
export const RENEW_CHANNEL = tracingChannel('nestjs-redis-lock:renew');
export const RELEASE_CHANNEL = tracingChannel('nestjs-redis-lock:release');
export const TICK_CHANNEL = tracingChannel('nestjs-redis-lock:tick');

/**
 * The object of all messages of one operation. Subscribers cannot change it; what is not known at the start is read
 * from `later`.
 */
export function frozenContext<Now extends object, Later extends object>(now: Now, later: Later): Readonly<Now & Later> {
  const context = { ...now } as Now & Later;
  for (const name of Object.keys(later) as (keyof Later & string)[]) {
    Object.defineProperty(context, name, { enumerable: true, get: () => later[name] });
  }
  Object.defineProperty(context, inspect.custom, { value: () => ({ ...context }) });
  return Object.freeze(context);
}

/** The operation begins and does not end in the same step. */
export function publishStart({ start, end }: TracingChannel, context: object): void {
  start.publish(context);
  end.publish(context);
}

/** @param hasFailed whether the context has an error by now */
export function publishEnd({ asyncStart, asyncEnd, error }: TracingChannel, context: object, hasFailed: boolean): void {
  if (hasFailed) error.publish(context);
  asyncStart.publish(context);
  asyncEnd.publish(context);
}

/**
 * Runs an operation between its messages, in the manner of `tracePromise` of Node. That one would write the result into
 * the context, and a lease carries a secret. Each `start` has one `asyncEnd`, also if the operation throws at once.
 *
 * @param ended writes what became of it into the context
 */
export function traceOperation<T>(
  channel: TracingChannel,
  context: object,
  operation: () => Promise<T>,
  ended: (result: { readonly value: T } | { readonly error: unknown }) => void,
): Promise<T> {
  return channel.start.runStores(context, () => {
    let isStarting = true;
    try {
      return operation().then(
        (value) => {
          ended({ value });
          publishEnd(channel, context, false);
          return value;
        },
        (error: unknown) => {
          ended({ error });
          publishEnd(channel, context, true);
          throw error;
        },
      );
    } catch (error) {
      isStarting = false;
      ended({ error });
      channel.end.publish(context);
      publishEnd(channel, context, true);
      throw error;
    } finally {
      if (isStarting) channel.end.publish(context);
    }
  });
}
