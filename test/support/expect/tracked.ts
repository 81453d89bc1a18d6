/** A promise whose state a test can look at without waiting for it. */
export interface Tracked<T> {
  readonly state: 'pending' | 'fulfilled' | 'rejected';
  /** The result. @throws unless it is fulfilled */
  readonly value: T;
  /** The reason of the rejection; `undefined` unless it is rejected. */
  readonly error: unknown;
}

export function track<T>(promise: Promise<T>): Tracked<T> {
  let state: Tracked<T>['state'] = 'pending';
  let settled: unknown;
  promise.then(
    (value) => {
      state = 'fulfilled';
      settled = value;
    },
    (error: unknown) => {
      state = 'rejected';
      settled = error;
    },
  );
  return {
    get state() {
      return state;
    },
    get value() {
      if (state !== 'fulfilled') throw new Error(`the promise is ${state}`, { cause: settled });
      return settled as T;
    },
    get error() {
      return state === 'rejected' ? settled : undefined;
    },
  };
}

/** A promise that the test resolves when it wants to. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
