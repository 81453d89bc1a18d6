/** Those whose clients have `semaphore(permits)`. */
export function semaphoreContestants(bench) {
  return bench.contestants('ours', 'peer').filter(({ hasSemaphore }) => hasSemaphore);
}
