// Stories for the old and for the new code alike. Without Jest, because a program of the other stack runs them as well.

/** Runs work under a lock. */
export type Locked = (work: (signal?: AbortSignal) => Promise<void>) => Promise<unknown>;

/** Two ran, and never at the same time. */
export const ALONE = { ran: 2, atOnce: 1 };
/** Two ran at the same time. */
export const TOGETHER = { ran: 2, atOnce: 2 };

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** All of them start in the same moment, and each works this long. How many ran, and how many at most at once. */
export async function crowd(workMs: number, calls: readonly Locked[]): Promise<{ ran: number; atOnce: number }> {
  let running = 0;
  let ran = 0;
  let atOnce = 0;
  const work = async (): Promise<void> => {
    ran++;
    atOnce = Math.max(atOnce, ++running);
    await sleep(workMs);
    running--;
  };
  // Ignores errors of the old code, for example of its release.
  await Promise.allSettled(calls.map((call) => call(work)));
  return { ran, atOnce };
}

/** The result or error of `then` while the lock is held. */
export async function whileHeld<T>(locked: Locked, then: () => Promise<T>): Promise<T | Error> {
  let result: T | Error | undefined;
  await locked(async () => {
    result = await then().catch((error: Error) => error);
  });
  return result!;
}

/**
 * Takes the lock away from work that holds it.
 * @returns how long after that its signal aborted, in milliseconds; `undefined`: not within this time
 */
export async function toldOfLoss(
  withinMs: number,
  locked: Locked,
  takeAway: () => Promise<unknown>,
): Promise<number | undefined> {
  let told: number | undefined;
  await locked(async (signal) => {
    await takeAway();
    const began = performance.now();
    if (signal?.aborted) return void (told = 0);
    await new Promise<void>((resolve) => {
      const timeout = setTimeout(resolve, withinMs);
      signal?.addEventListener('abort', () => {
        told = performance.now() - began;
        clearTimeout(timeout);
        resolve();
      });
    });
  }).catch(() => {});
  return told;
}
