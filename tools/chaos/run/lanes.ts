/** Does the jobs, so many at a time, in their order. Gives their results in the same order. */
export async function inLanes<T>(lanes: number, jobs: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let job = next++; job < jobs.length; job = next++) results[job] = await jobs[job]!();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}
