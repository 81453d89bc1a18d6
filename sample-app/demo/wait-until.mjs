// @ts-check
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Polls until there is an answer, and returns it. The limit only affects how long a broken run takes.
 *
 * @template T
 * @param {string} what for the message
 * @param {() => Promise<T | undefined | false>} ask
 * @returns {Promise<T>}
 */
export async function waitUntil(what, ask, { withinMs = 20_000, everyMs = 25 } = {}) {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > giveUpAt) throw new Error(`Not seen within ${withinMs / 1000} s: ${what}`);
    await sleep(everyMs);
  }
}
