import { promisify } from 'node:util';
import { MessageChannel } from 'node:worker_threads';
import type { Clock } from './clock.js';

export class Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;

  constructor() {
    let settle!: Pick<Deferred<T>, 'resolve' | 'reject'>;
    this.promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }));
    this.resolve = settle.resolve;
    this.reject = settle.reject;
  }
}

/** Resolves to the first of both. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<'time' | 'aborted'> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve('aborted');
    const settle = (why: 'time' | 'aborted'): void => {
      timer?.cancel();
      signal?.removeEventListener('abort', abort);
      resolve(why);
    };
    const abort = (): void => settle('aborted');
    const timer = delayMs === Infinity ? undefined : clock.setTimer(() => settle('time'), delayMs);
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Resolves as the promise does, or to `undefined` after the time. Its timer keeps the process alive. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, ms), undefined);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Calls back after all pending callbacks of settled promises. */
type AfterPromises = (callback: () => void) => void;

const isUnreplaced = isReal(globalThis.setImmediate);
const afterPromises = isUnreplaced ? globalThis.setImmediate : byMessage();

/** The original function: a test may replace it while it runs, and the code for Redis is loaded only then. */
export const nextTick: AfterPromises = isUnreplaced ? process.nextTick : afterPromises;

/** Lets everything run that waits for nothing but settled promises. Fake timers of a test runner do not stop it. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    afterPromises(resolve);
  });
}

/** Node's computes its promisified twin. A fake from a test runner, installed before this module, does not. */
function isReal(setImmediate: object): boolean {
  return Object.getOwnPropertyDescriptor(setImmediate, promisify.custom)?.get !== undefined;
}

/** No test runner replaces messages. They keep the process alive only while one is on its way. */
function byMessage(): AfterPromises {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.on('message', () => {
    waiting.shift()!();
    if (waiting.length === 0) port1.unref();
  });
  port1.unref();
  return (callback) => {
    waiting.push(callback);
    port1.ref();
    port2.postMessage(0);
  };
}

/** Calls back after the running code. Not by `queueMicrotask`, which the fake timers of a test runner replace. */
export async function soon(callback: () => void): Promise<void> {
  await Promise.resolve();
  callback();
}
