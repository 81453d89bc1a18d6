import type { LockEvent, LockEventType } from '../../../lib/kernel/events/events.js';
import type { RegisteredGroup } from '../../../lib/kernel/events/observers.js';
import type { LockTelemetrySource } from '../../../lib/kernel/events/telemetry.js';

type EventOf<T extends LockEventType> = Extract<LockEvent, { type: T }>;

interface Blocked {
  readonly group: string;
  readonly holderGroup: string;
  readonly waitedMs: number;
}

/** A lock service with values set by the test. */
export class FakeSource implements LockTelemetrySource {
  readonly #observers = new Map<(event: never) => void, readonly LockEventType[] | undefined>();
  readonly #registered: RegisteredGroup[] = [];
  readonly #listeners = new Set<(registered: RegisteredGroup) => void>();

  constructor(readonly service = 'default') {}

  get isObserved(): boolean {
    return this.#observers.size > 0 || this.#listeners.size > 0 || this.#blockedListeners.size > 0;
  }

  observe: LockTelemetrySource['observe'] = (observer, types) => {
    this.#observers.set(observer, types);
    return () => void this.#observers.delete(observer);
  };

  onRegistered: LockTelemetrySource['onRegistered'] = (listener) => {
    this.#listeners.add(listener);
    for (const registered of this.#registered) listener(registered);
    return () => void this.#listeners.delete(listener);
  };

  trace: LockTelemetrySource['trace'] = () => () => {};

  readonly #blockedListeners = new Set<(blocked: Blocked) => void>();

  onBlocked(listener: (blocked: Blocked) => void): () => void {
    this.#blockedListeners.add(listener);
    return () => void this.#blockedListeners.delete(listener);
  }

  /** A call has waited for a holder. */
  blocked(blocked: Blocked): void {
    for (const listener of this.#blockedListeners) listener(blocked);
  }

  stats: LockTelemetrySource['stats'] = () => {
    throw new Error('no telemetry here asks for them');
  };

  register(kind: RegisteredGroup['kind'], name: string, more: Partial<RegisteredGroup> = {}): void {
    const registered: RegisteredGroup = { kind, name, group: name, mode: 'exclusive', ...more };
    this.#registered.push(registered);
    for (const listener of this.#listeners) listener(registered);
  }

  /** Says that something happened, with what the test leaves out filled in. */
  emit<T extends LockEventType>(type: T, more: Partial<EventOf<T>> = {}): void {
    const event = { ...COMMON, service: this.service, type, ...more };
    for (const [observer, types] of this.#observers) {
      if (types === undefined || types.includes(type)) observer(event as never);
    }
  }
}

const COMMON = {
  resource: 'order:7',
  mode: 'exclusive',
  group: 'order',
  fencingToken: 1,
  attempts: 1,
  waitedMs: 0,
  heldMs: 0,
  hasWaited: false,
  handedOn: false,
  isEnd: false,
  job: 'report',
  tick: 'today',
  rerun: false,
  leadership: 'importer',
} as const;
