// A command at several servers: what is waited for is a majority of them.

/** @returns {Promise<void>} settles when more than half of the promises have been fulfilled, or cannot be any more */
export function majority(promises) {
  const needed = Math.floor(promises.length / 2) + 1;
  return new Promise((resolve, reject) => {
    let fulfilled = 0;
    let rejected = 0;
    for (const promise of promises) {
      promise.then(
        () => ++fulfilled === needed && resolve(),
        (error) => ++rejected > promises.length - needed && reject(error),
      );
    }
  });
}
