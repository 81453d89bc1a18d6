import { randomInt } from 'node:crypto';
import { appendFileSync, writeFileSync } from 'node:fs';
import { describeThrown, quote } from '../../../kernel/util/quoted.js';
import { count } from '../../../kernel/util/plurals.js';
import { formatDuration } from '../../../kernel/util/durations.js';
import type { CommandContext } from '../frame/command.js';
import { CliError, UsageError } from '../frame/exit-codes.js';
import { durationOption, flagOption, integerOption, textOption } from '../frame/options.js';
import { checkHistory, type Verdict } from './check-history.js';
import { toJsonLines } from './history.js';
import { CLIENTS, LEASE_MS, Trial } from './trial.js';

/** More than a minute shows little more. */
const MAX_TRY_MS = 10 * 60_000;
const MAX_SEED = 2 ** 31;

export const TRY_OPTIONS = {
  try: durationOption('Tries locks under a separate prefix for this time, such as 60s. At most 10m.', MAX_TRY_MS),
  seed: integerOption('number', 'Repeats the locks, waits and faults of an earlier --try. Default: random.', 0),
  history: textOption(
    'file',
    'Writes to this file what each call of --try saw, so that you can check it with another tool.',
  ),
  yes: flagOption('Skips the confirmation of --try. Required without a terminal.'),
} as const;

type TryContext = CommandContext<typeof TRY_OPTIONS>;

/** The outcome of a try. */
export interface Tried extends Verdict {
  /** What is worst, in one sentence. */
  readonly result: string;
  readonly again: string;
  readonly seed: number;
  readonly ms: number;
  readonly leases: number;
  readonly lost: number;
  readonly refusals: Readonly<Record<string, number>>;
  readonly faults: Trial['faults'];
}

/** @throws UsageError if the options do not belong together, or nobody can confirm */
export function checkTryOptions({ options, terminal }: Pick<TryContext, 'options' | 'terminal'>): void {
  const { yes, seed, history } = options;
  if (options.try === undefined) {
    if (yes || seed !== undefined || history !== undefined) {
      throw new UsageError('--seed, --history and --yes need --try <duration>.');
    }
    return;
  }
  if (!yes && !terminal.isInteractive) {
    throw new UsageError('There is no terminal for the confirmation: add --yes. Nothing was changed.');
  }
  if (history === undefined) return;
  try {
    // What it has stays until the try has been confirmed, and has run.
    appendFileSync(history, '');
  } catch (error) {
    throw new UsageError(`--history ${quote(history)} cannot be written: ${describeThrown(error)}`);
  }
}

/** Tries the locks, after a confirmation. @throws CliError if it was refused, or Redis cannot be reached */
export async function tryLocks(ms: number, context: TryContext): Promise<Tried> {
  const { options, session, terminal, signal, output, atEnd } = context;
  const { seed = randomInt(MAX_SEED), history } = options;
  const open = await session();
  const trial = new Trial(open, seed);
  const asked =
    `${CLIENTS} clients take locks under the prefix ${trial.keyPrefix} at ${open.where} for ${formatDuration(ms)}, ` +
    'with at most 200 commands a second, and delete their keys.';
  if (!options.yes) {
    output.note(asked);
    if (!(await terminal.confirm('Try the locks?', signal))) throw new CliError('usage', 'Nothing was changed.');
  }
  atEnd(async () => {
    try {
      await trial.close();
      if (signal.aborted) output.note('Stopped. The keys of the trial have been deleted.');
    } catch (error) {
      output.note(`Keys that begin with ${trial.keyPrefix} could not be deleted: ${describeThrown(error)}`);
    }
  });
  terminal.progress(`${asked} Ctrl-C ends it …`);
  await trial.run(ms, signal);
  if (history !== undefined) writeFileSync(history, toJsonLines(trial.calls));
  return judge(trial, seed, ms);
}

function judge({ calls, slow, refusals, faults }: Trial, seed: number, ms: number): Tried {
  const verdict = checkHistory(calls, { leaseMs: LEASE_MS, slow });
  const leases = calls.filter(({ lease }) => lease !== undefined).length;
  const forTime = formatDuration(ms);
  if (leases === 0) {
    throw new CliError('redis', `No call got a lock in ${forTime}: ${Object.keys(refusals).join(', ')}.`);
  }
  const [worst, ...others] = verdict.violations;
  const more = others.length === 0 ? '' : ` And ${others.length} more.`;
  const tried = `${count(leases, 'lease')} and ${count(faults.connections + faults.clients, 'fault')}`;
  return {
    result: worst
      ? `A guarantee was broken: ${worst.what}${more}`
      : `All guarantees held for ${forTime}, with ${tried}.`,
    again: `npx nestjs-redis-lock doctor --try ${ms / 1_000}s --seed ${seed}`,
    seed,
    ms,
    leases,
    lost: calls.filter(({ end }) => end === 'lost').length,
    refusals,
    faults,
    ...verdict,
  };
}
