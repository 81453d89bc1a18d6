import { setTimeout as sleep } from 'node:timers/promises';

/** What is left after garbage collection; the pauses are for what ends a little later, such as timers. Needs --expose-gc. */
export async function heapUsed() {
  for (let times = 0; times < 4; times++) {
    globalThis.gc();
    await sleep(50);
  }
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
