import type { RaceToolError } from './schedule/race-errors.js';

/** Taken when the module is loaded, so that fake timers which a test installs later do not stop the tool. */
const { setImmediate: nextTurn, setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

/** The setup and the invariant may take so many times `patienceMs`: they may start an application. */
const TIMES = 4;
/** After the time is over, what was ready has so many turns of the event loop, which may have stood still. */
const TURNS = 5;

/**
 * Waits for the setup or the invariant.
 *
 * @param tooLate makes the error for one that has not ended within so many milliseconds
 */
export async function waitFor<T>(
  working: T | Promise<T>,
  patienceMs: number,
  tooLate: (ms: number) => RaceToolError,
): Promise<T> {
  if (!(working instanceof Promise)) return working;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = async (): Promise<void> => {
      for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => nextTurn(resolve));
      reject(tooLate(TIMES * patienceMs));
    };
    timer = startTimer(() => void giveUp(), TIMES * patienceMs);
  });
  try {
    return await Promise.race([working, late]);
  } finally {
    stopTimer(timer);
  }
}
