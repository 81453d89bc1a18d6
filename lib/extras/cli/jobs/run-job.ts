import type { JobRun } from '../../../features/jobs/core/job-info.js';
import type { Operator, OperatorRequests } from '../../../features/jobs/core/operator-requests.js';
import { commandLine, plainOrQuoted, quote } from '../../../kernel/util/quoted.js';
import { notTaken, untilTaken } from '../../views/asked-run.js';
import type { CommandContext } from '../frame/command.js';
import { CliError, type ExitName } from '../frame/exit-codes.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { pauseFor } from '../frame/pause.js';
import { processLife } from '../../../features/fleet/core/roll/life.js';
import { withoutAnswers } from '../../../features/fleet/core/findings/survey.js';
import { NO_OWN_JOBS, pollInstances } from '../frame/roll.js';
import type { Session } from '../frame/session.js';

/** How often the end of the run is looked for. */
const END_LOOK_MS = 500;
/** An instance reports the end right after the history has it. If it dies in between, it never does. */
const LOOKS_AFTER_END = 4;
/** How long to wait for the end of the run. */
const DEFAULT_WAIT_MS = 10 * 60_000;
/** How often an instance that has not begun is looked for, and how often in a row it has to be missing. */
const LIFE_LOOK_MS = 2_000;
const MISSING_LOOKS = 2;
/** So many newer runs there may be of the job. */
const MAX_RUNS = 100;

interface Asking extends Pick<CommandContext, 'output' | 'terminal' | 'signal'> {
  readonly session: Session;
  readonly name: string;
  readonly operator: Operator;
}

/** Asks the instances to run a job, and waits for its end. The code of a job is in the instances. */
export async function askForRun(asking: Asking, waitMs = DEFAULT_WAIT_MS): Promise<ExitName> {
  const { name, operator, session, output, terminal } = asking;
  const { jobs, keyPrefix } = session;
  const { instances } = await jobs.get(name, NO_OWN_JOBS);
  const asked = jobs.requests.create(name, operator);
  terminal.progress(`Asking the instances to run ${quote(name)} …`);
  const taken = await untilTaken(jobs.requests, asked, asking.signal);
  if (taken.state === 'asked' || taken.state === 'gone') {
    throw new CliError('refused', notTaken(name, instances));
  }
  const { instanceId } = taken;
  const where = plainOrQuoted(instanceId);
  const ended = await untilEnded(asking, asked, taken, waitMs);
  terminal.endProgress();
  const { state, run, isMissing } = ended;
  if (isMissing) {
    throw new CliError(
      'refused',
      `${where} accepted the request to run the job ${quote(name)}, but is no longer connected, and no run has started: ` +
        `its process is probably dead, and no other instance takes over the request. Check whether a run ` +
        `has started since, then request a new one: ${commandLine('job', name, '--history')}`,
    );
  }
  const isOver = state.state === 'ended' || run?.outcome !== undefined;
  if (!isOver) {
    const history = commandLine('job', name, '--history');
    output.note(
      run
        ? `${where} is still running the job ${quote(name)} after ${longDuration(waitMs)}. The run continues. To see how it ends: ${history}`
        : `${where} accepted the request to run the job ${quote(name)}, but has not started it within ${longDuration(waitMs)}: ` +
            `an earlier run has not ended, or the instance is frozen. The run may still start. To check: ${history}`,
    );
    return 'partial';
  }
  if (state.state === 'ended' && state.outcome === 'refused') {
    throw new CliError(
      'refused',
      `${where} did not run the job ${quote(name)}: ${state.message ?? 'no reason is known'}`,
    );
  }
  const outcome = state.state === 'ended' && run?.outcome === undefined ? state.outcome : run!.outcome!;
  const tookMs = run?.endedAt === undefined ? undefined : run.endedAt - run.startedAt;
  const message = state.state === 'ended' ? state.message : undefined;
  const took = tookMs === undefined ? '' : ` after ${longDuration(tookMs)}`;
  output.print({
    json: { keyPrefix, job: name, ran: { instanceId, outcome, tookMs, error: message, by: operator.by } },
    shown: [`${name} ran on ${where}: ${outcome}${message === undefined ? '' : ` (${message})`}${took}.`],
  });
  return outcome === 'ok' ? 'done' : 'refused';
}

type RequestState = Awaited<ReturnType<OperatorRequests['read']>>;

/**
 * The instance reports the end. If it has died during the run, the history has the end. If it has died before,
 * nothing has it, and the instance is no longer connected.
 */
async function untilEnded(
  { session, terminal, signal, name }: Asking,
  asked: ReturnType<OperatorRequests['create']>,
  taken: RequestState & { readonly instanceId: string },
  waitMs: number,
): Promise<{ readonly state: RequestState; readonly run: JobRun | undefined; readonly isMissing: boolean }> {
  const { jobs } = session;
  const since = performance.now();
  let missing = 0;
  let looksAfterEnd = 0;
  let lookedAt = since;
  for (let state: RequestState = taken; ;) {
    const runs = await jobs.history(name, NO_OWN_JOBS, MAX_RUNS);
    const run = runs.find(({ manual, tick }) => manual && tick.split(' ')[0]!.endsWith(`:${asked.tickId}`));
    const waitedMs = performance.now() - since;
    if (run?.outcome !== undefined) looksAfterEnd++;
    const isOver = state.state === 'ended' || looksAfterEnd > LOOKS_AFTER_END;
    // It was missing before this look at the history.
    const isMissing = !run && missing >= MISSING_LOOKS;
    if (isOver || isMissing || waitedMs >= waitMs || signal.aborted) return { state, run, isMissing };
    if (!run && performance.now() - lookedAt >= LIFE_LOOK_MS) {
      missing = (await isGone(taken.instanceId, session)) ? missing + 1 : 0;
      lookedAt = performance.now();
    }
    const does = run ? 'is running it,' : 'has accepted the request, but not started the run,';
    terminal.progress(`${name}: ${plainOrQuoted(taken.instanceId)} ${does} after ${longDuration(waitedMs)} …`);
    await pauseFor(Math.min(END_LOOK_MS, waitMs - waitedMs), signal);
    state = await jobs.requests.read(asked);
  }
}

/** Where the instances cannot be asked, it may live. */
async function isGone(instanceId: string, session: Session): Promise<boolean> {
  const roll = await pollInstances(session).catch(withoutAnswers);
  return roll !== undefined && processLife(instanceId, roll) === 'unsubscribed';
}
