import type { LockMode } from '../../kernel/api/lock-mode.js';
import type { LockEventOf } from '../../kernel/events/events.js';
import { quote } from '../../kernel/util/quoted.js';
import type { LockTelemetry, LockTelemetrySource } from '../../kernel/events/telemetry.js';
import type { CallTrace, TracedLock } from '../../kernel/events/lock-tracer.js';

/** The logged events, and their verbs in the text of the log. */
const VERBS = {
  waiting: 'waits for',
  acquired: 'acquired',
  notAcquired: 'did not acquire',
  released: 'released',
  lost: 'lost',
  leaseAbandoned: 'left',
  releaseFailed: 'could not release',
} as const;
const LOGGED = Object.keys(VERBS) as (keyof typeof VERBS)[];
type LoggedEvent = LockEventOf<keyof typeof VERBS>;

/** One event of a lock in a test. */
export interface LockLogEntry {
  readonly type: LoggedEvent['type'];
  /** Milliseconds since the test's applications started. */
  readonly atMs: number;
  /** The `instanceId` of the application. */
  readonly instanceId: string;
  /** The name of the lock service. */
  readonly service: string;
  readonly resource: string;
  readonly mode: LockMode;
  /** The fencing token of the lease. `undefined` if nothing was granted. */
  readonly token?: number;
  /** The call site, `Class.method (file:line:column)`, if the stack shows it. */
  readonly from?: string;
  /** The time that the lease was held, if it has ended. */
  readonly heldMs?: number;
  /** The time that the call waited. */
  readonly waitedMs?: number;
  /** The reason why the lease was lost, or the lock not acquired. */
  readonly reason?: string;
}

/** More entries than this are dropped, the oldest first. */
const MAX_ENTRIES = 10_000;

/** The events of the locks of all applications of a test, in order. */
export class LockLog {
  readonly #entries: LockLogEntry[] = [];
  /** The `acquired` entries of the leases that are held, by instance, resource and token. */
  readonly #held = new Map<string, LockLogEntry>();
  /** Call sites of leases whose event has not been logged yet. */
  readonly #from = new Map<string, string>();

  /** @internal @param now returns the milliseconds since the start of the fleet */
  constructor(private readonly now: () => number) {}

  /** The events since the start of the fleet, or since {@link clear}; at most the newest 10,000. */
  get entries(): readonly LockLogEntry[] {
    return [...this.#entries];
  }

  /** The `acquired` entries of the leases that are held now. */
  get held(): readonly LockLogEntry[] {
    return [...this.#held.values()];
  }

  /** The entries of one resource. */
  of(resource: string): readonly LockLogEntry[] {
    return this.#entries.filter((entry) => entry.resource === resource);
  }

  /** Drops the entries. {@link held} still finds the current leases. */
  clear(): void {
    this.#entries.length = 0;
  }

  /** Formats the log, one line for each entry. */
  toString(): string {
    return this.#entries.map(lineOf).join('\n');
  }

  /** @internal Sets the call site of a lease that was granted. */
  cameFrom(instance: string, resource: string, token: number, from: string): void {
    this.#from.set(idOf(instance, resource, token), from);
  }

  /** @internal */
  note(instance: string, event: LoggedEvent): void {
    const { type, service, resource, mode } = event;
    const of = { type, atMs: this.now(), instanceId: instance, service, resource, mode };
    if (!('fencingToken' in event)) return this.#add({ ...of, ...detailsOf(event) });
    const { fencingToken: token } = event;
    const id = idOf(instance, resource, token);
    const from = this.#held.get(id)?.from ?? this.#from.get(id);
    const entry: LockLogEntry = { ...of, token, ...(from !== undefined && { from }), ...detailsOf(event) };
    this.#from.delete(id);
    if (type === 'acquired') this.#held.set(id, entry);
    else if (type !== 'releaseFailed' || event.isEnd) this.#held.delete(id);
    this.#add(entry);
  }

  #add(entry: LockLogEntry): void {
    this.#entries.push(entry);
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
  }
}

function idOf(instance: string, resource: string, token: number): string {
  return `${instance} ${token} ${resource}`;
}

function detailsOf(event: LoggedEvent): Pick<LockLogEntry, 'heldMs' | 'waitedMs' | 'reason'> {
  switch (event.type) {
    case 'waiting': {
      const holders = event.holders.map(({ instanceId }) => instanceId).join(', ');
      return holders ? { reason: `held by ${holders}` } : {};
    }
    case 'acquired':
      return { waitedMs: event.waitedMs };
    case 'notAcquired':
      return { waitedMs: event.waitedMs, reason: event.error.name };
    case 'lost':
      return { heldMs: event.heldMs, reason: event.reason };
    default:
      return { heldMs: event.heldMs };
  }
}

function lineOf(entry: LockLogEntry): string {
  const { atMs, type, instanceId, resource, mode, token, from, heldMs, waitedMs, reason } = entry;
  const notes = [
    mode !== 'exclusive' && mode,
    token !== undefined && type === 'acquired' && `token ${token}`,
    waitedMs !== undefined && waitedMs >= 1 && `waited ${Math.round(waitedMs)} ms`,
    heldMs !== undefined && `held ${Math.round(heldMs)} ms`,
    reason,
    type === 'acquired' && from !== undefined && `at ${from}`,
  ].filter(Boolean);
  const time = `${Math.round(atMs)} ms`.padStart(10);
  return `${time}  ${instanceId} ${VERBS[type]} ${quote(resource)}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}`;
}

/** Logs the events of one lock service. */
export class LogTelemetry implements LockTelemetry {
  constructor(
    private readonly log: LockLog,
    private readonly instance: string,
  ) {}

  start(source: LockTelemetrySource): () => void {
    const { log, instance } = this;
    const stops = [
      source.observe((event) => log.note(instance, event), LOGGED),
      source.trace({ acquire: (lock) => this.#follow(lock), tick: () => undefined }),
    ];
    return () => stops.forEach((stop) => stop());
  }

  #follow({ resource }: TracedLock): CallTrace | undefined {
    const from = callerOf(new Error().stack);
    if (from === undefined) return undefined;
    return {
      traceparent: undefined,
      run: (ask) => ask(),
      waits: () => {},
      granted: ({ fencingToken }) => {
        this.log.cameFrom(this.instance, resource, fencingToken, from);
        return undefined;
      },
      failed: () => {},
    };
  }
}

/** The folders of the package, from the path of this file: the sources, or both built formats. */
const OURS = ownFolders();

function ownFolders(): string[] {
  const own = /^\s+at .*?(?:file:\/\/)?(\/[^\s()]*[/\\])(testing[/\\]fleet|dist[/\\](?:esm|cjs))[/\\]/m;
  const [, folder, below] = new Error().stack?.match(own) ?? [];
  if (folder === undefined || below === undefined) return [];
  return below.startsWith('testing') ? [folder] : [`${folder}dist/esm/`, `${folder}dist/cjs/`];
}

/** Returns the first line of a stack outside of this package, Node and Nest. */
function callerOf(stack: unknown): string | undefined {
  if (typeof stack !== 'string') return undefined;
  for (const [, line] of stack.matchAll(/^\s+at (.+)$/gm)) {
    if (OURS.some((folder) => line!.includes(folder))) continue;
    if (/node:|[/\\]node_modules[/\\](?:@nestjs|rxjs|nestjs-redis-lock)[/\\]|<anonymous>/.test(line!)) continue;
    return line!.replace(/^async /, '');
  }
  return undefined;
}
