// Asks the server every two seconds while the page is visible, and less often after errors.
import type { ConsoleAction, ConsoleBodies, ErrorBody } from '../../../lib/extras/console/bodies.js';
import { here, kept } from './address.js';

const EVERY_MS = 2_000;
const MAX_MS = 30_000;
const ANSWER_MS = 15_000;

/** Why there is no answer. */
export class Problem extends Error {
  constructor(
    /** 0: no answer at all. */
    readonly status: number,
    message: string,
    readonly code?: string,
  ) {
    super(message);
  }
}

export let session: ConsoleBodies['session'] | undefined;
export let problem: Problem | undefined;
export let isPaused = kept('paused') === 'yes';
let changed: () => void;
/** By their addresses. `at` is when the answer was last confirmed, by the clock of this machine. */
const answers = new Map<string, { readonly etag: string; readonly body: unknown; readonly at: number }>();
const MAX_ANSWERS = 20;
/** The time by which the clock of Redis is ahead. */
let ahead = 0;
let round = 0;
let failures = 0;
let timer = 0;

/** What an action has done. It stays until another view opens. */
export let notice = '';

export function tell(text: string): void {
  notice = text;
  changed();
}

/** @param onChange draws what has changed */
export function start(onChange: () => void): void {
  changed = onChange;
  document.onvisibilitychange = () => next(0);
  look();
}

/** The present question. The address may have changed before the event. */
function question(): string {
  const { view, query } = here();
  return addressOf(view, query);
}

export const body = (): unknown => answers.get(question())?.body;

/** The time of the last answer, by the clock of this machine; 0 before the first one. */
export const answeredAt = (): number => answers.get(question())?.at ?? 0;

/** Now, by the clock of Redis. It is stopped without answers, so that nothing seems to continue. */
export const now = (): number => (isPaused || problem ? answeredAt() : Date.now()) + ahead;

export const may = (action: ConsoleAction): boolean => session!.actions.includes(action);

/** The answer would be the same: the page does not ask again by itself. */
export const isFinal = (): boolean => problem !== undefined && Math.floor(problem.status / 100) === 4;

/** At what the address names, now. */
export function look(): void {
  problem = undefined;
  failures = 0;
  next(0, true);
}

export function pause(): void {
  isPaused = !isPaused;
  kept('paused', isPaused ? 'yes' : 'no');
  next(0);
  changed();
}

/** @throws Problem */
export async function act(action: ConsoleAction, what: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json', 'x-lock-console': '1' };
  const response = await ask(ofService(action), { method: 'POST', headers, body: JSON.stringify(what) });
  next(0, true);
  return response.json();
}

function next(inMs: number, isForced = false): void {
  clearTimeout(timer);
  if (isForced || !(isPaused || document.hidden || isFinal())) timer = window.setTimeout(() => void poll(), inMs);
}

async function poll(): Promise<void> {
  const mine = ++round;
  try {
    [session] = (await Promise.all([session ?? get(ofService('session')), get(question())])) as [
      ConsoleBodies['session'],
      unknown,
    ];
    if (mine !== round) return;
    problem = undefined;
    failures = 0;
  } catch (error) {
    if (mine !== round) return;
    problem = error instanceof Problem ? error : new Problem(0, 'The application does not answer.');
    failures++;
  }
  next(Math.min(MAX_MS, EVERY_MS * 2 ** failures));
  changed();
}

async function get(address: string): Promise<unknown> {
  const before = answers.get(address);
  const response = await ask(address, {
    signal: AbortSignal.timeout(ANSWER_MS),
    headers: before ? { 'if-none-match': before.etag } : {},
  });
  const found =
    before && response.status === 304
      ? before
      : { etag: response.headers.get('etag') ?? '', body: (await response.json()) as unknown };
  if (answers.size > MAX_ANSWERS) answers.clear();
  answers.set(address, { ...found, at: Date.now() });
  return found.body;
}

/** @throws Problem */
async function ask(address: string, init: RequestInit): Promise<Response> {
  const response = await fetch(`api/${address}`, { cache: 'no-store', ...init });
  const { status, ok, headers } = response;
  const at = Number(headers.get('x-lock-console-now'));
  if (at) ahead = at - Date.now();
  const isJson = headers.get('content-type')?.includes('json');
  if (status === 304 || (ok && isJson)) return response;
  // An application may send to its sign-in page instead.
  if (ok) throw new Problem(401, SIGN_IN);
  const { error }: Partial<ErrorBody> = isJson ? await response.json() : {};
  throw new Problem(
    status,
    error?.message ?? (status === 401 ? SIGN_IN : `The application answers with ${status}.`),
    error?.code,
  );
}

const SIGN_IN = 'Sign in to the application, then refresh.';

/** Of the lock service that is shown. */
function ofService(name: string): string {
  const { service } = here().query;
  return addressOf(name, service ? { service } : {});
}

const addressOf = (name: string, query: Record<string, string>): string => `${name}?${new URLSearchParams(query)}`;
