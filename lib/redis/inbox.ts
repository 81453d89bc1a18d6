import { inRootContext } from '../core/util/async-contexts.js';
import { type Clock, SYSTEM_CLOCK, type Timer } from '../core/util/clock.js';
import type {
  Hearing,
  PushedGrant,
  RetentionNotice,
  RollCall,
  OperatorRequest,
  StoreListener,
} from '../core/store/hearing.js';
import type { StoreProblem } from '../core/store/store-probe.js';
import type { FreedMessage } from '../core/store/watch-store.js';
import type { Connection } from './connection/connection.js';
import { subscriptionPause } from './connection/ioredis-options.js';
import { toStoreError } from './script/failures.js';
import { sealOf } from './grant-seal.js';
import { INBOX_LOSES, INBOX_REFUSED, NO_INBOX } from './health/health-problems.js';
import { InboxProbes, type InboxProbesDeps } from './inbox-probes.js';
import { decodeResource } from './keys.js';

/** "seal token sentAt resource", as the scripts write it. The resource comes last, because it may contain spaces. */
const GRANT_MESSAGE = /^([0-9a-f]{40}) ((\d{1,16}) (\d{1,16})) (.+)$/s;
/** "seal kept left sentAt resource": the resource is free when so many milliseconds are over. */
const RETENTION_MESSAGE = /^([0-9a-f]{40}) (kept (\d{1,16}) (\d{1,16})) (.+)$/s;
/** "seal superseded instance resource": a newer call of that instance wants the resource. */
const SUPERSEDED_MESSAGE = /^([0-9a-f]{40}) (superseded (\S{1,200})) (.+)$/s;
/** "latch count name": a latch is open. */
const LATCH_MESSAGE = /^latch (\d{1,16}) (.+)$/s;
/** "free seal mark resource": a watched resource was free. */
const FREED_MESSAGE = /^free ([0-9a-f]{40}) (\d{1,3}) (.+)$/s;
/** "probe nonce number": this instance has sent it to find out whether messages arrive. */
const PROBE_MESSAGE = /^probe [\w-]{22} \d{1,16}$/;
/** "roll nonce scope": all instances are asked. The scope comes last, because it may contain spaces. */
const ROLL_MESSAGE = /^roll (\S{1,64}) (.*)$/s;
/** "request id resource": an operator asks for something. */
const REQUEST_MESSAGE = /^request ([\w-]{22}) (.+)$/s;
/** Longer than the longest message of the scripts: a resource of 512 bytes, all of them encoded. */
const TOO_LONG = 2_000;

type InboxMessage =
  | { readonly grant: PushedGrant }
  | { readonly notice: RetentionNotice }
  | { readonly latch: { name: string; count: number } }
  | { readonly freed: FreedMessage }
  | { readonly call: RollCall }
  | { readonly request: OperatorRequest }
  /** The whole message. */
  | { readonly probe: string };

/** Parses a message. Returns `undefined` for a message that the scripts do not write. */
export function readMessage(message: string): InboxMessage | undefined {
  if (message.length > TOO_LONG) return undefined;
  // First, because nearly every message is one. No message of another kind looks like it.
  const grant = readGrant(message);
  if (grant) return { grant };
  if (message.startsWith('latch ')) return readLatch(message);
  if (message.startsWith('free ')) return readFreed(message);
  if (message.startsWith('roll ')) return readCall(message);
  if (message.startsWith('request ')) return readRequest(message);
  if (message.startsWith('probe ')) return PROBE_MESSAGE.test(message) ? { probe: message } : undefined;
  return readNotice(message) ?? readSuperseded(message);
}

/** Tells what a message says. */
export function deliver(said: Exclude<InboxMessage, { probe: string }>, listener: Required<StoreListener>): void {
  if ('grant' in said) listener.granted(said.grant);
  else if ('notice' in said) listener.retained(said.notice);
  else if ('freed' in said) listener.freed(said.freed);
  else if ('request' in said) listener.asked(said.request);
  else if ('call' in said) listener.called(said.call);
  else listener.opened(said.latch.name, said.latch.count);
}

function readNotice(message: string): InboxMessage | undefined {
  const parts = RETENTION_MESSAGE.exec(message);
  if (!parts) return undefined;
  const [seal, sealed, leftMs, sentAt, resource] = parts.slice(1) as [string, string, string, string, string];
  return {
    notice: {
      resource: decodeResource(resource),
      leftMs: Number(leftMs),
      sentAt: Number(sentAt),
      isFor: (owner) => sealOf(sealed, owner) === seal,
    },
  };
}

function readSuperseded(message: string): InboxMessage | undefined {
  const parts = SUPERSEDED_MESSAGE.exec(message);
  if (!parts) return undefined;
  const [seal, sealed, by, resource] = parts.slice(1) as [string, string, string, string];
  const isFor = (owner: string): boolean => sealOf(sealed, owner) === seal;
  return { notice: { resource: decodeResource(resource), leftMs: Infinity, sentAt: 0, by, isFor } };
}

function readLatch(message: string): InboxMessage | undefined {
  const parts = LATCH_MESSAGE.exec(message);
  if (!parts) return undefined;
  const [, count, name] = parts as unknown as [string, string, string];
  return { latch: { name: decodeResource(name), count: Number(count) } };
}

function readFreed(message: string): InboxMessage | undefined {
  const parts = FREED_MESSAGE.exec(message);
  if (!parts) return undefined;
  const [seal, mark, resource] = parts.slice(1) as [string, string, string];
  const isFor = (watcher: string): boolean => sealOf(mark, watcher) === seal;
  return { freed: { resource: decodeResource(resource), mark: Number(mark), isFor } };
}

function readCall(message: string): InboxMessage | undefined {
  const [, nonce, scope] = ROLL_MESSAGE.exec(message) ?? [];
  return nonce === undefined ? undefined : { call: { nonce, scope: scope! } };
}

function readRequest(message: string): InboxMessage | undefined {
  const [, id, resource] = REQUEST_MESSAGE.exec(message) ?? [];
  return id === undefined ? undefined : { request: { resource: decodeResource(resource!), id } };
}

function readGrant(message: string): PushedGrant | undefined {
  const parts = GRANT_MESSAGE.exec(message);
  if (!parts) return undefined;
  const [, seal, tokenAndStamp, token, sentAt, resource] = parts;
  return {
    resource: decodeResource(resource!),
    fencingToken: Number(token),
    sentAt: Number(sentAt),
    // Hashes only when asked: most messages of strangers are about resources that no caller waits for here.
    isFor: (owner) => sealOf(tokenAndStamp!, owner) === seal,
  };
}

/**
 * The channel on which this instance learns of its grants, and of what it waits for without taking it: latches that
 * open, resources that are free. There is one subscription, made at start-up, whatever the instance waits for.
 */
export class Inbox {
  /** Resolves when it was open for the first time. */
  readonly opened: Promise<void>;
  #refusal: string | undefined;
  /** Whether Redis has answered to the subscription on the present connection. */
  #isAnswered = false;
  readonly #probes: InboxProbes;
  /** Until this connection subscribes again. */
  #again: Timer | undefined;
  #isClosed = false;

  /**
   * @param channels the own inbox, and the channel that all instances hear
   * @param keyAt see {@link InboxProbesDeps}
   */
  constructor(
    private readonly connection: Connection,
    channels: { readonly own: string; readonly ofAll: string },
    keyAt: InboxProbesDeps['keyAt'],
    private readonly listener: Required<StoreListener>,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {
    const { subscriber } = connection;
    const isOpen = (): boolean => this.isSettled && this.#refusal === undefined;
    this.#probes = new InboxProbes({
      connection,
      channel: channels.own,
      keyAt,
      isOpen,
      unproven: () => listener.unproven(),
    });
    subscriber.on('message', (_channel: string, message: string) => {
      const said = readMessage(message);
      if (said === undefined) return;
      if ('probe' in said) this.#probes.arrived(said.probe);
      else deliver(said, listener);
    });
    // A promise, too, keeps the async context in which it was made.
    this.opened = inRootContext(() => this.#open(connection, channels));
  }

  #open(connection: Connection, { own, ofAll }: { readonly own: string; readonly ofAll: string }): Promise<void> {
    const { subscriber } = connection;
    return new Promise((resolve) => {
      let listening = false;
      const check = (): void => {
        if (listening && connection.isConnected) resolve();
      };
      const settle = (refusal?: string): void => {
        this.#refusal = refusal;
        this.#isAnswered = true;
        listening = true;
        this.#probes.opened();
        this.listener.reconnected();
        check();
      };
      // Messages were lost in the meantime: the waiters have to ask now.
      const subscribe = (): void => {
        this.#again?.cancel();
        // The connection broke: the next one subscribes again.
        if (subscriber.status !== 'ready') return;
        subscriber.subscribe(own).then(
          () => settle(),
          (error: unknown) => {
            const sorted = toStoreError(error);
            const isKnown = this.#isAnswered && this.#refusal !== undefined;
            if (sorted.failure === 'refused' && !isKnown) settle(sorted.message);
            if (this.#isClosed) return;
            this.#again?.cancel();
            this.#again = this.clock.setTimer(subscribe, subscriptionPause(sorted), { background: true });
          },
        );
        // Locks do without it: an instance that an ACL keeps from it does not answer to roll calls.
        subscriber.subscribe(ofAll).catch(() => {});
      };
      subscriber.on('ready', () => {
        this.#isAnswered = false;
        subscribe();
      });
      subscriber.on('close', () => {
        this.#isAnswered = false;
        this.#again?.cancel();
        this.#probes.closed();
      });
      connection.onConnected(() => {
        this.#probes.connected();
        this.listener.reconnected();
        check();
      });
    });
  }

  /** Whether Redis has accepted or refused the subscription, and the connection stands. */
  get isSettled(): boolean {
    return this.#isAnswered && this.connection.subscriber.status === 'ready';
  }

  /**
   * Why Redis does not let this instance listen. Its waiters then learn of grants by their heartbeats, more slowly, and a
   * release passes them over. Redis is asked again every 10 s.
   */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** Whether messages arrive. */
  get hearing(): Hearing {
    return this.#probes;
  }

  /** What keeps messages from arriving, for a health check. */
  problems(): StoreProblem[] {
    if (!this.connection.isConnected) return [];
    if (!this.isSettled) return [NO_INBOX];
    if (this.#refusal !== undefined) return [INBOX_REFUSED];
    return this.#probes.isLosing ? [INBOX_LOSES] : [];
  }

  /** From now on, it says nothing. */
  close(): void {
    this.#isClosed = true;
    this.#again?.cancel();
    this.#probes.stop();
  }

  /** Resolves to `true` when the inbox is open, or to `false` after `patienceMs`. */
  async untilOpen(patienceMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), patienceMs);
    });
    const opened = await Promise.race([this.opened.then(() => true), timeout]);
    clearTimeout(timer);
    return opened;
  }
}
