import { renewedMsAgo } from '../../../kernel/api/holder.js';
import { describeValue } from '../../../kernel/api/validation.js';
import { fencingTickOf } from '../../../kernel/store/fencing-token.js';
import { plainOrQuoted, quote, quoteSome } from '../../../kernel/util/quoted.js';
import { notTaken, untilTaken } from '../../views/asked-run.js';
import type { ConsoleAction, ConsoleRequests } from '../bodies.js';
import type { Content } from './fleet-views.js';
import { Refusal } from './reply.js';
import type { SnapshotCache } from './source.js';

const YEAR_MS = 366 * 24 * 60 * 60_000;
const MAX_NAME = 1_024;
const MAX_REASON = 200;

/** Does one thing, for a person whose name is known. Nothing is done where the body is not what it should be. */
type Acts = { readonly [K in ConsoleAction]: (looks: SnapshotCache, body: unknown, by: string) => Promise<Content<K>> };

export const ACTS: Acts = { release, runJob, pauseJob, resumeJob };

async function release(looks: SnapshotCache, body: unknown, by: string): Promise<Content<'release'>> {
  const fields = new Fields<ConsoleRequests['release']>(body, ['resource', 'fencingToken', 'reason']);
  const resource = fields.name('resource');
  const fencingToken = fields.integer('fencingToken', Number.MAX_SAFE_INTEGER);
  const reason = fields.reason();
  if (reason === undefined) throw new Refusal('BAD_REQUEST', 'reason is missing: give one of 1 to 200 characters.');
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
  const { job, operator } = jobIn(body, by);
  const { instances } = await records.get(job, looks.source.ownJobs());
  const asked = records.requests.create(job, operator);
  const taken = await untilTaken(records.requests, asked);
  if (taken.state === 'asked' || taken.state === 'gone') throw new Refusal('NOT_TAKEN', notTaken(job, instances));
  const { instanceId } = taken;
  const ending = taken.state === 'ended' ? taken : undefined;
  return {
    at: looks.now(),
    job,
    instanceId,
    state: ending?.outcome ?? 'taken',
    ...(ending?.message !== undefined && { message: ending.message }),
    by,
  };
}

async function pauseJob(looks: SnapshotCache, body: unknown, by: string): Promise<Content<'pauseJob'>> {
  const { records, source } = looks;
  const { job, operator, fields } = jobIn(body, by, 'forMs');
  const forMs = fields.optional('forMs') ? fields.integer('forMs', YEAR_MS) : undefined;
  const at = looks.now();
  const until = forMs === undefined ? {} : { until: Math.round(at + forMs) };
  const before = await records.pause(job, source.ownJobs(), { ...operator, ...until });
  records.tell(job, { command: 'pause', ...operator, ...until });
  return { at, job, pause: { at: Math.round(at), ...operator, ...until }, ...(before && { before }) };
}

async function resumeJob(looks: SnapshotCache, body: unknown, by: string): Promise<Content<'resumeJob'>> {
  const { records, source } = looks;
  const { job, operator } = jobIn(body, by);
  const before = await records.resume(job, source.ownJobs());
  if (before === undefined)
    throw new Refusal('NOT_PAUSED', `The job ${quote(job)} is not paused. Nothing was changed.`);
  records.tell(job, { command: 'resume', ...operator });
  return { at: looks.now(), job, before };
}

function jobIn(body: unknown, by: string, ...others: 'forMs'[]) {
  const fields = new Fields<ConsoleRequests['pauseJob']>(body, ['job', 'reason', ...others]);
  const reason = fields.reason();
  return { fields, job: fields.name('job'), operator: { by, ...(reason !== undefined && { reason }) } };
}

/** The fields of the body of an action. */
class Fields<T> {
  readonly #values: Readonly<Record<string, unknown>>;

  /** @throws Refusal for what is no object, and for fields that the action does not have */
  constructor(body: unknown, names: readonly (keyof T & string)[]) {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      throw new Refusal('BAD_REQUEST', `The body must be a JSON object, not ${describeValue(body)}.`);
    }
    const unknown = Object.keys(body).filter((name) => !(names as readonly string[]).includes(name));
    if (unknown.length > 0) {
      throw new Refusal(
        'BAD_REQUEST',
        `The body has unknown fields: ${quoteSome(unknown)}. It may have ${names.join(', ')}.`,
      );
    }
    this.#values = body as Record<string, unknown>;
  }

  optional(name: keyof T & string): unknown {
    return Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
  }

  /** @throws Refusal */
  name(name: keyof T & string): string {
    const value = this.optional(name);
    if (typeof value === 'string' && value !== '' && value.length <= MAX_NAME) return value;
    throw new Refusal('BAD_REQUEST', `${name} must be a name of 1 to ${MAX_NAME} characters.`);
  }

  /** @throws Refusal */
  integer(name: keyof T & string, largest: number): number {
    const value = this.optional(name);
    if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= largest) return value as number;
    throw new Refusal('BAD_REQUEST', `${name} must be an integer from 1 to ${largest}, not ${describeValue(value)}.`);
  }

  /** Why, without the white space around it; `undefined` where none is stated. @throws Refusal */
  reason(): string | undefined {
    const value = this.optional('reason' as keyof T & string);
    if (value === undefined || value === null) return undefined;
    const reason = typeof value === 'string' ? value.trim() : '';
    if (typeof value !== 'string' || reason.length > MAX_REASON) {
      throw new Refusal('BAD_REQUEST', `reason must be a text of at most ${MAX_REASON} characters.`);
    }
    return reason === '' ? undefined : reason;
  }
}
