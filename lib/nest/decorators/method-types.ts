import type { ResourceNames } from '../../kernel/api/resource.js';
import type { LockBusyError } from '../../kernel/api/busy-errors.js';

// Any method that a decorator may wrap.
export type AsyncMethod = (...args: never[]) => Promise<unknown>;

// A type whose argument is an explanation, which the compiler shows when a decorator rejects a method.
export interface Mistake<Explanation extends string> {
  readonly mistake: Explanation;
}

/**
 * Decorates an async method. TypeScript rejects a method that is not async, whose parameters do not fit the key
 * function, or whose result type excludes the result of a skipped call.
 *
 * `A`: the parameters of the key function. `B`: the result of a skipped call. `O`: the parameters of the function
 * `onBusy` after the error.
 */
export interface LockedMethodDecorator<A extends readonly unknown[], B = never, O extends readonly unknown[] = A> {
  // Refuses generators and Observables before anything else.
  <M extends UnfinishedMethod>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M> & (UnfinishedMistake<M> extends void ? never : unknown),
  ): UnfinishedMistake<M>;
  // Accepts by assignability, because TypeScript decides conditional types late if the class has type parameters.
  <P extends readonly [...A, ...unknown[]] & readonly [...O, ...unknown[]], R>(
    target: object,
    propertyKey: string | symbol,
    // If the parameters of the method do not fit, TypeScript infers a P without a fixed length.
    descriptor: TypedPropertyDescriptor<(...args: P) => Promise<R>> &
      (number extends P['length'] ? never : unknown) &
      IsResult<B, R>,
  ): void;
  // Accepts other methods, even generic ones. For all others, it returns the mistake.
  <M>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): IsAny<M> extends true ? void : MethodMistake<A, B, O, M>;
}

type AnyGenerator = Generator<unknown, unknown, never> | AsyncGenerator<unknown, unknown, never>;

// The part of an RxJS Observable that identifies it.
interface AnyObservable {
  subscribe(...observer: never[]): unknown;
  lift(...operator: never[]): unknown;
}

type UnfinishedMethod = (...args: never[]) => AnyGenerator | Promise<AnyGenerator | AnyObservable | null | undefined>;

// `void` for a method that returns `any`, which fits everything, or only `undefined` or `null`.
type UnfinishedMistake<M extends UnfinishedMethod, R = Awaited<ReturnType<M>>> =
  IsAny<R> extends true
    ? void
    : [Extract<R, AnyGenerator>] extends [never]
      ? [Extract<R, AnyObservable>] extends [never]
        ? void
        : Mistake<'An Observable runs after the lock is released: return await lastValueFrom(observable)'>
      : Mistake<'The code of a generator runs after the lock is released: lock inside the generator'>;

// The mistake of a method, or `void` if the decorator may wrap it.
type MethodMistake<A extends readonly unknown[], B, O extends readonly unknown[], M> = M extends AsyncMethod
  ? ((...args: A) => void) extends (...args: Parameters<M>) => void
    ? ((...args: O) => void) extends (...args: Parameters<M>) => void
      ? ResultMistake<B, Awaited<ReturnType<M>>>
      : Mistake<'After the error, onBusy must take the parameters of the method'>
    : Mistake<'The key function must take the parameters of the method'>
  : Mistake<'The method must be async'>;

// The mistake if `B` is not among the results `R` of a method, otherwise `void`.
export type ResultMistake<B, R> =
  unknown extends IsResult<B, R>
    ? void
    : undefined extends B
      ? Mistake<'A call that does not run the method returns undefined: add undefined to the return type'>
      : Mistake<'onBusy or parse returns a different type than the method'>;

// `unknown` if `B` is among the results `R` of a method, otherwise `never`.
type IsResult<B, R> = [B] extends [Awaited<R>] ? unknown : [Mutable<B>] extends [Awaited<R>] ? unknown : never;

// The `const` of a type parameter makes literals readonly, and a method may return arrays that are not.
type Mutable<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends object
    ? { -readonly [K in keyof T]: Mutable<T[K]> }
    : T;

// `any` is every method when TypeScript compares this decorator with `MethodDecorator`: `applyDecorators`.
export type IsAny<T> = 0 extends 1 & T ? true : false;

// The result of a call whose resource is busy. `S`: the option `onBusy`. `R`: the result of the function, if it is one.
export type BusyResult<S, R> = ('skip' extends S ? undefined : never) | VoidAsUndefined<Awaited<R>>;

type VoidAsUndefined<T> = T extends void ? undefined : T;

// Any result. It names the primitive types, because TypeScript 5 widens a literal result otherwise.
export type AnyResult = string | number | bigint | boolean | symbol | NonNullable<unknown> | null | undefined | void;

// The type of `onBusy` from which TypeScript infers the result of a function, and the parameters `O` that it declares.
export type InferredOnBusy<S, R, O extends readonly unknown[]> = S | ((busy: LockBusyError, ...args: O) => R);

/**
 * The reaction of a decorated method when the resource is not free. `A`: the parameters of the function after the
 * error.
 */
export type OnBusy<A extends readonly unknown[] = never[]> =
  /** Throws `LockBusyError` or its subclasses `LockTimeoutError` and `LockQueueFullError`. */
  | 'throw'
  /** Returns `undefined` without running. */
  | 'skip'
  /** Returns the result of this function instead. */
  | ((busy: LockBusyError, ...args: A) => unknown);

// Any `onBusy`, whatever the parameters of its function.
export type AnyOnBusy = 'throw' | 'skip' | ((...args: never[]) => unknown);

// A key without options. It has no property `key`, so the compiler checks every object with a `key` as options.
export type KeyAlone<A extends readonly unknown[]> = string | KeyNames | KeyFunction<A>;

export interface KeyNames extends ReadonlyArray<string> {
  readonly key?: undefined;
}

// Part of the result type of a key function, so that the compiler shows it when a function returns something else.
export type KeyMistake = 'The key function must return the name itself, so it must not be async';

// Returns the resource or resources of a call.
export interface KeyFunction<A extends readonly unknown[]> {
  (...args: A): ResourceNames | Mistake<KeyMistake>;
  readonly key?: undefined;
}
