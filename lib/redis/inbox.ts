import { inRootContext } from '../kernel/util/async-contexts.js';
import { type Clock, SYSTEM_CLOCK, type Timer } from '../kernel/util/clock.js';
import type {
  PushedGrant,
  PushedNotice,
  RollCall,
  OperatorRequest,
  StoreListener,
} from '../kernel/store/message-health.js';
import type { StoreProblem } from '../kernel/store/store-probe.js';
import type { FreedMessage } from '../kernel/store/watch-store.js';
import type { Connection } from './connection/connection.js';
import { subscriptionPause } from './connection/ioredis-options.js';
import { toStoreError } from './script/failures.js';
import { sealOf } from './grant-seal.js';
import { INBOX_LOSES, INBOX_REFUSED, NO_INBOX } from './health/health-problems.js';
import { InboxProbes, type InboxProbesDeps } from './inbox-probes.js';
import { decodeResource } from './keys.js';

/** Longer than the longest message of the scripts: a resource of 512 bytes, all of them encoded. */
const TOO_LONG = 2_000;

type InboxMessage =
  | { readonly grant: PushedGrant }
  | { readonly notice: PushedNotice }
  | { readonly freed: FreedMessage }
  | { readonly call: RollCall }
  | { readonly request: OperatorRequest }
  | { readonly probe: string };

/** The message, and what the pattern has found in it. */
type Parts = readonly [string, string, string, string, string, string];

/**
 * The messages as the scripts write them, and their meanings. Parts that may contain spaces come last. Seals are hashed
 * only when asked for: most messages of strangers are about resources that no caller waits for here.
 */
const MESSAGES: readonly (readonly [RegExp, read: (parts: Parts) => InboxMessage])[] = [
  // "seal token sentAt resource": a grant. First, because nearly every message is one.
  [
    /^([0-9a-f]{40}) ((\d{1,16}) (\d{1,16})) (.+)$/s,
    ([, seal, sealed, token, sentAt, name]) => {
      const resource = decodeResource(name);
      const isFor = isSealed(seal, sealed);
      return { grant: { resource, fencingToken: Number(token), sentAt: Number(sentAt), isFor } };
    },
  ],
  // "seal kept left sentAt resource": the resource is free in so many milliseconds.
  [
    /^([0-9a-f]{40}) (kept (\d{1,16}) (\d{1,16})) (.+)$/s,
    ([, seal, sealed, leftMs, sentAt, name]) => {
      const resource = decodeResource(name);
      const isFor = isSealed(seal, sealed);
      return { notice: { resource, leftMs: Number(leftMs), sentAt: Number(sentAt), isFor } };
    },
  ],
  // "seal superseded instance resource": a newer call of that instance wants the resource.
  [
    /^([0-9a-f]{40}) (superseded (\S{1,200})) (.+)$/s,
    ([, seal, sealed, by, name]) => {
      const isFor = isSealed(seal, sealed);
      return { notice: { resource: decodeResource(name), leftMs: Infinity, sentAt: 0, by, isFor } };
    },
  ],
  // "free seal mark resource": a watched resource was free.
  [
    /^free ([0-9a-f]{40}) (\d{1,3}) (.+)$/s,
    ([, seal, mark, name]) => {
      return { freed: { resource: decodeResource(name), mark: Number(mark), isFor: isSealed(seal, mark) } };
    },
  ],
  // "roll nonce scope": all instances are asked.
  [/^roll (\S{1,64}) (.*)$/s, ([, nonce, scope]) => ({ call: { nonce, scope } })],
  // "request id resource": an operator asks for something.
  [/^request ([\w-]{22}) (.+)$/s, ([, id, name]) => ({ request: { resource: decodeResource(name), id } })],
  // "probe nonce number": this instance has sent it to find out whether messages arrive.
  [/^(probe [\w-]{22} \d{1,16})$/, ([, probe]) => ({ probe })],
];

function isSealed(seal: string, sealed: string): (owner: string) => boolean {
  return (owner) => sealOf(sealed, owner) === seal;
}

/** Parses a message. Returns `undefined` for a message that the scripts do not write. */
export function readMessage(message: string): InboxMessage | undefined {
  if (message.length > TOO_LONG) return undefined;
  for (const [pattern, read] of MESSAGES) {
    const parts = pattern.exec(message);
    if (parts) return read(parts as unknown as Parts);
  }
  return undefined;
}

export function deliver(said: Exclude<InboxMessage, { probe: string }>, listener: Required<StoreListener>): void {
  if ('grant' in said) listener.granted(said.grant);
  else if ('notice' in said) listener.retained(said.notice);
  else if ('freed' in said) listener.freed(said.freed);
  else if ('request' in said) listener.asked(said.request);
  else listener.called(said.call);
}

/** A channel that is subscribed to on each new connection, and again after a pause if Redis refuses or does not answer. */
class Subscription {
  #again: Timer | undefined;
  #isClosed = false;

  constructor(
    private readonly subscriber: Connection['subscriber'],
    private readonly channel: string,
    private readonly clock: Clock,
    private readonly told: { accepted(): void; refused(why: string): void },
  ) {}

  readonly begin = (): void => {
    this.pause();
    // The connection broke: the next one subscribes again.
    if (this.subscriber.status !== 'ready') return;
    this.subscriber.subscribe(this.channel).then(
      () => this.told.accepted(),
      (error: unknown) => {
        const sorted = toStoreError(error);
        if (sorted.failure === 'refused') this.told.refused(sorted.message);
        if (this.#isClosed) return;
        this.pause();
        this.#again = this.clock.setTimer(this.begin, subscriptionPause(sorted), { background: true });
      },
    );
  };

  /** Until the next connection. */
  pause(): void {
    this.#again?.cancel();
  }

  close(): void {
    this.#isClosed = true;
    this.pause();
  }
}

/**
 * The channel on which this instance learns of its grants, and of watched resources that are free. There is one subscription, made at start-up, whatever the instance waits for.
 */
export class Inbox {
  /** Resolves when it was open for the first time. */
  readonly opened: Promise<void>;
  /**
   * Why Redis does not let this instance listen. Its waiters then learn of grants by their heartbeats, more slowly, and a
   * release passes them over. Redis is asked again every 10 s.
   */
  refusal: string | undefined;
  /** Since when there is the present connection, on the monotonic clock. */
  openedAt = -Infinity;
  readonly hearing: InboxProbes;
  /** `true` once Redis has answered to the subscription on the present connection. */
  #isAnswered = false;
  #subscriptions: readonly Subscription[] = [];
  #isClosed = false;

  /**
   * @param channels the own inbox, and the channel of all instances
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
    const isOpen = (): boolean => this.isSettled && this.refusal === undefined;
    this.hearing = new InboxProbes({
      connection,
      channel: channels.own,
      keyAt,
      isOpen,
      deliveryUncertain: () => listener.deliveryUncertain(),
    });
    subscriber.on('message', (_channel: string, message: string) => {
      const said = readMessage(message);
      if (said === undefined) return;
      if ('probe' in said) this.hearing.arrived(said.probe);
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
        this.refusal = refusal;
        this.#isAnswered = true;
        listening = true;
        this.hearing.opened();
        this.listener.reconnected();
        check();
      };
      const ownInbox = new Subscription(subscriber, own, this.clock, {
        // Messages were lost in the meantime: the waiters have to ask now.
        accepted: () => settle(),
        refused: (message) => {
          const isKnown = this.#isAnswered && this.refusal !== undefined;
          if (!isKnown) settle(message);
        },
      });
      // Locks do without it: an instance that an ACL keeps from it leaves its reports instead.
      const ofInstances = new Subscription(subscriber, ofAll, this.clock, {
        accepted: () => this.listener.unasked(false),
        refused: () => {
          if (!this.#isClosed) this.listener.unasked(true);
        },
      });
      this.#subscriptions = [ownInbox, ofInstances];
      subscriber.on('ready', () => {
        this.openedAt = this.clock.now();
        this.#isAnswered = false;
        for (const subscription of this.#subscriptions) subscription.begin();
      });
      subscriber.on('close', () => {
        this.#isAnswered = false;
        for (const subscription of this.#subscriptions) subscription.pause();
        this.hearing.closed();
      });
      connection.onConnected(() => {
        this.hearing.connected();
        this.listener.reconnected();
        check();
      });
    });
  }

  /** `true` if Redis has accepted or refused the subscription, and the connection is open. */
  get isSettled(): boolean {
    return this.#isAnswered && this.connection.subscriber.status === 'ready';
  }

  /** The problems that keep messages from arriving, for a health check. */
  problems(): StoreProblem[] {
    if (!this.connection.isConnected) return [];
    if (!this.isSettled) return [NO_INBOX];
    if (this.refusal !== undefined) return [INBOX_REFUSED];
    return this.hearing.isLosing ? [INBOX_LOSES] : [];
  }

  close(): void {
    this.#isClosed = true;
    for (const subscription of this.#subscriptions) subscription.close();
    this.hearing.stop();
  }
}
