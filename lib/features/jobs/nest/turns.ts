/** This many jobs begin in one turn of the event loop. */
const JOBS_PER_TURN = 8;

/** Not the fake one of a test, which may never call back. */
const callInNextTurn = setImmediate;
const waiting: (() => void)[] = [];
let begun = 0;

/**
 * Resolves when the next job may begin. The timers of all jobs that are due at one second fire in one turn of the event
 * loop. Their claims are spread over the turns that follow, so that other work is done in between.
 */
export async function jobTurn(): Promise<void> {
  if (begun === 0) callInNextTurn(beginSome);
  if (++begun > JOBS_PER_TURN) await new Promise<void>((resolve) => waiting.push(resolve));
}

function beginSome(): void {
  const some = waiting.splice(0, JOBS_PER_TURN);
  begun = some.length;
  if (begun > 0) callInNextTurn(beginSome);
  for (const begin of some) begin();
}
