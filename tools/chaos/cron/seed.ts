/** The seed of all random choices: CHAOS_SEED, or a new one for each run. */
export const SEED = Number(process.env['CHAOS_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** The command that repeats a failed run. */
export const repeatWith = `CHAOS_SEED=${SEED} npm test -- --selectProjects chaos --testPathPatterns chaos/cron`;

/** Prints what a run has seen. Not by console.log, to which jest adds a stack. */
export function report(what: string, counts: object): void {
  const text = Object.entries(counts).map(([name, count]) => `${name} ${String(count)}`);
  process.stdout.write(`${what}: ${text.join(', ')}\n`);
}
