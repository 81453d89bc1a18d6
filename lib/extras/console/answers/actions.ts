import { renewedMsAgo } from '../../../kernel/api/holder.js';
import { Option, OptionTable } from '../../../kernel/api/validation.js';
import { fencingTickOf } from '../../../kernel/store/fencing-token.js';
import { plainOrQuoted, quote } from '../../../kernel/util/quoted.js';
import { notTaken, untilTaken } from '../../views/asked-run.js';
import type { ConsoleAction } from '../bodies.js';
import type { Content } from './fleet-views.js';
import { Refusal } from './reply.js';
import type { SnapshotCache } from './source.js';

const YEAR_MS = 366 * 24 * 60 * 60_000;

/** The JSON of `POST api/release` and so on. A later lease than the one with this token is left alone. */
interface Requests extends Record<Exclude<ConsoleAction, 'release'>, JobRequest> {
  readonly release: { readonly resource: string; readonly fencingToken: number; readonly reason: string };
}

/** Without `forMs`, a pause lasts until it is ended. */
interface JobRequest {
  readonly job: string;
  readonly reason?: string;
  readonly forMs?: number;
}

const NAME = Option.text(/^[^]{1,1024}$/, 'a name of 1 to 1024 characters').required();
const OF_JOB = { job: NAME, reason: Option.text(/^[^]{0,200}$/, 'at most 200 characters') };

/** What the body of each action may have. */
const BODIES = {
  release: new OptionTable({
    resource: NAME,
    fencingToken: Option.atLeast(1, 'a fencing token').required(),
    reason: Option.text(/^(?=\s*\S)[^]{1,200}$/, 'a text of 1 to 200 characters').required(),
  }),
  runJob: new OptionTable(OF_JOB),
  resumeJob: new OptionTable(OF_JOB),
  pauseJob: new OptionTable({ ...OF_JOB, forMs: Option.milliseconds(1, YEAR_MS) }),
};

/** @throws InvalidLockOptionsError for a body that the action does not have */
function read<K extends ConsoleAction>(action: K, body: unknown): Requests[K] {
  BODIES[action].check(action, body as object);
  return body as Requests[K];
}

/** Does one thing, for a person whose name is known. Nothing is done where the body is not what it should be. */
type Acts = { readonly [K in ConsoleAction]: (looks: SnapshotCache, body: unknown, by: string) => Promise<Content<K>> };

export const ACTS: Acts = { release, runJob, pauseJob, resumeJob };

async function release(looks: SnapshotCache, body: unknown, by: string): Promise<Content<'release'>> {
  const { resource, fencingToken, reason: given } = read('release', body);
  const reason = given.trim();
  const { operators } = looks.source.client;
  const name = quote(resource);
  const { holders } = await operators.inspect(resource);
  if (holders.length === 0) {
    throw new Refusal('GONE', `${name} is free: there is no lease to end. Nothing was changed.`);
  }
  const tick = fencingTickOf(fencingToken);
  const holder = holders.find((each) => fencingTickOf(each.fencingToken) === tick);
  if (!holder) {
    const [first] = holders;
    throw new Refusal(
      'OUT_OF_DATE',
      `The lease that you saw (token ${fencingToken}) has ended. ${name} is now held by ` +
        `${plainOrQuoted(first!.instanceId)}, token ${first!.fencingToken}. Nothing was changed.`,
    );
  }
  const hasEnded = await operators.forceRelease(resource, { fencingToken, by, reason });
  if (!hasEnded) {
    throw new Refusal(
      'OUT_OF_DATE',
      `The lease that you saw (token ${fencingToken}) has just ended. Nothing was changed.`,
    );
  }
  const heardInMs = Math.max(0, holder.leaseMs / 3 - renewedMsAgo(holder));
  const at = looks.now();
  return { at, resource, fencingToken, holder: holder.instanceId, by, reason, heardAt: Math.round(at + heardInMs) };
}

async function runJob(looks: SnapshotCache, body: unknown, by: string): Promise<Content<'runJob'>> {
  const { records } = looks;
  const { job, operator } = jobIn('runJob', body, by);
  const { instances } = await records.get(job, looks.source.ownJobs());
  const asked = records.requests.create(job, operator);
  const taken = await untilTaken(records.requests, asked);
  if (taken.state === 'asked' || taken.state === 'gone') throw new Refusal('NOT_TAKEN', notTaken(job, instances));
  const { instanceId } = taken;
  const { outcome: state = 'taken', message } = taken.state === 'ended' ? taken : {};
  return { at: looks.now(), job, instanceId, state, message, by };
}

async function pauseJob(looks: SnapshotCache, body: unknown, by: string): Promise<Content<'pauseJob'>> {
  const { records, source } = looks;
  const { job, operator, forMs } = jobIn('pauseJob', body, by);
  const at = looks.now();
  const until = forMs === undefined ? {} : { until: Math.round(at + forMs) };
  const before = await records.pause(job, source.ownJobs(), { ...operator, ...until });
  return { at, job, pause: { at: Math.round(at), ...operator, ...until }, before };
}

async function resumeJob(looks: SnapshotCache, body: unknown, by: string): Promise<Content<'resumeJob'>> {
  const { records, source } = looks;
  const { job, operator } = jobIn('resumeJob', body, by);
  const before = await records.resume(job, source.ownJobs(), operator);
  if (before === undefined)
    throw new Refusal('NOT_PAUSED', `The job ${quote(job)} is not paused. Nothing was changed.`);
  return { at: looks.now(), job, before };
}

function jobIn(action: 'runJob' | 'pauseJob' | 'resumeJob', body: unknown, by: string) {
  const { job, reason, forMs } = read(action, body);
  return { job, forMs, operator: { by, ...(reason?.trim() && { reason: reason.trim() }) } };
}
