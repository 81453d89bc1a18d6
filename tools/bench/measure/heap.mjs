import { setTimeout as sleep } from 'node:timers/promises';

/** Returns the heap after garbage collection; the pauses let timers and the like end. Needs --expose-gc. */
export async function heapUsed() {
  for (let times = 0; times < 4; times++) {
    globalThis.gc();
    await sleep(50);
  }
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
