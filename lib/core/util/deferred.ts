/** A promise that is settled from outside. */
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
