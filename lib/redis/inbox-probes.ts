import type { MessageHealth } from '../kernel/store/message-health.js';
import type { LockStoreError } from '../kernel/store/store-error.js';
import {
  backoff,
  type Clock,
  jitter,
  type Random,
  SYSTEM_CLOCK,
  SystemRandom,
  type Timer,
} from '../kernel/util/clock.js';
import { settle } from '../kernel/util/promises.js';
import type { Connection } from './connection/connection.js';
import type { ServerConnection } from './connection/server-connection.js';
import { PROBE_INBOX } from './script/scripts.js';

/** The shortest time between two probes. With the jitter, it is at most 1.75 s. */
const PERIOD_MS = 1_400;
/** The next one follows sooner than that if the message of the last one has not come by then. */
const FOLLOWS_MS = 750;
/** The same if Redis does not let this instance publish. An operator may grant that right. */
const REFUSED_PERIOD_MS = 10_000;
/** A probe proves the loss of an earlier one only if that one was answered this long before it. */
const APART_MS = 500;
/**
 * The maximum time before a connection that loses messages is replaced: instances that lose them at the same time do
 * not connect at the same time. The longest is for a connection that never delivers any.
 */
const REPLACED_WITHIN_MS = { first: 400, longest: 30_000 };
/** The time for which a waiter may rely on messages if the loss of one may go unnoticed. */
const CAUTIOUS_MS = 5_000;

/** An error of Redis begins with a code, and one of the connection does not. */
const REPLY = /^[A-Z]{2,}\b/;

interface Probe {
  readonly text: string;
  readonly number: number;
  readonly server: ServerConnection;
  readonly sentAt: number;
  /** When the server answered it; of a probe in a row of lost ones, when it answered the first of the row. */
  answeredAt: number;
  hasArrived: boolean;
  /** The server knows no listening connection, so it skips this instance, even if messages arrive. */
  isPassedOver: boolean;
}

export interface InboxProbesDeps {
  readonly connection: Pick<
    Connection,
    'isCluster' | 'mayLoseMessages' | 'serverInTurn' | 'replaceSubscriber' | 'route'
  >;
  readonly channel: string;
  /** A key that no other instance uses. In a cluster, it is in this slot. */
  readonly keyAt: (slot?: number) => string;
  /** Returns true if Redis has accepted the subscription on the present connection. */
  readonly isOpen: () => boolean;
  /** Called when messages are not known to arrive any more. */
  readonly deliveryUncertain: () => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * Detects that messages do not arrive although the connection for them seems to work, and has it replaced: behind a
 * proxy or a firewall that hangs, or on a server that is a replica now. Every 1.4 to 1.75 s while any waiter relies on
 * messages, it has Redis send one to the own inbox. A grant would take the same way.
 *
 * Messages are lost if probes in a row were answered and have not arrived, the last one sent half a second or more
 * after the first was answered. A server that does not answer, or answers with an error, proves nothing. Neither does a
 * blocked event loop: pending messages are read first.
 */
export class InboxProbes implements MessageHealth {
  readonly #deps: InboxProbesDeps;
  readonly #clock: Clock;
  readonly #random: Random;
  /** The probes that have not arrived, by their text, without the ones of an earlier connection. */
  readonly #awaited = new Map<string, Probe>();
  /** The probes that were answered and have not arrived: the last one of each server. */
  readonly #lost = new Map<ServerConnection, Probe>();
  /** The servers that have not answered. They get no second probe. */
  readonly #asked = new Set<ServerConnection>();
  #number = 0;
  #lastArrived = 0;
  #sentAt = -Infinity;
  #silentSince: number | undefined;
  #timer: Timer | undefined;
  /** Until the message of the last probe is overdue. */
  #doubting: Timer | undefined;
  /** Set until the connection is replaced. */
  #replacing: Timer | undefined;
  /** The number of replacements since a probe has arrived. */
  #replaced = 0;
  #isNeeded = false;
  #isRefused = false;
  #isLosing = false;
  #wasHeard = false;
  #isStopped = false;

  constructor(deps: InboxProbesDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? SYSTEM_CLOCK;
    this.#random = deps.random ?? new SystemRandom();
  }

  get trustedForMs(): number {
    if (!this.#deps.isOpen() || this.#isRefused || this.#isLosing) return 0;
    return this.#deps.connection.mayLoseMessages ? CAUTIOUS_MS : Infinity;
  }

  get silentSince(): number | undefined {
    return this.#silentSince;
  }

  /** `true` while messages are lost, until the first one arrives on another connection. */
  get isLosing(): boolean {
    return this.#isLosing;
  }

  /** A wait that is soon over sends no probe: the first one comes after a while, and a timer that is set serves all. */
  setNeeded(isNeeded: boolean): void {
    this.#isNeeded = isNeeded;
    if (!isNeeded || this.#timer || this.#isStopped) return;
    const now = this.#clock.now();
    this.#sendIn(Math.max(this.#sentAt + this.#period() - now, this.#random.fraction() * PERIOD_MS));
  }

  arrived(text: string): void {
    const probe = this.#awaited.get(text);
    // A probe that another program repeats or invents is not awaited.
    if (!probe) return;
    probe.hasArrived = true;
    // It was taken for lost. On a cluster, the answer may come first each time.
    if (this.#lost.get(probe.server) === probe && !isLost(probe)) this.#heard(probe);
  }

  opened(): void {
    this.#forget();
    this.#compare();
  }

  closed(): void {
    this.#forget();
    this.#stay();
    this.#compare();
  }

  connected(): void {
    this.#forget();
    // It is not known whether this server answers, and how long it has been silent.
    if (this.#silentSince === undefined || !this.#timer || this.#isStopped) return;
    this.#sendIn(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#doubting?.cancel();
    this.#stay();
  }

  #period(): number {
    return (this.#isRefused ? REFUSED_PERIOD_MS : PERIOD_MS) * jitter(this.#random);
  }

  #sendIn(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(this.#next, delayMs, { background: true });
  }

  readonly #next = (): void => {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isNeeded) {
      this.#sendIn(this.#period());
      this.#send();
      return;
    }
    this.#forget();
    // Nothing is judged before the replacement: the next waiter would rely on messages that do not come.
    this.#stay();
    this.#isLosing = false;
    this.#replaced = 0;
    this.#silentSince = undefined;
    this.#compare();
  };

  #send(): void {
    const { connection, channel, keyAt, isOpen } = this.#deps;
    const number = ++this.#number;
    // Waiters ask, so they find out by themselves who is silent.
    if (!isOpen() && this.#asked.size === 0) this.#silentSince = undefined;
    const place = isOpen() ? connection.serverInTurn(number) : undefined;
    if (!place?.server.isConnected || this.#asked.has(place.server)) return;
    const { server, slot } = place;
    const text = `probe ${this.#random.id()} ${number}`;
    const sentAt = (this.#sentAt = this.#clock.now());
    const probe = { text, number, server, sentAt, answeredAt: 0, hasArrived: false, isPassedOver: false };
    this.#awaited.set(text, probe);
    this.#asked.add(server);
    this.#silentSince ??= sentAt;
    const read = (reply: unknown): number => reply as number;
    connection.route({ script: PROBE_INBOX, keys: [keyAt(slot)], args: [channel, text], read }).then(
      (receivers) => this.#answered(probe, receivers),
      (error: LockStoreError) => this.#failed(probe, error),
    );
  }

  #failed(probe: Probe, { failure, message }: LockStoreError): void {
    this.#asked.delete(probe.server);
    this.#awaited.delete(probe.text);
    if (!REPLY.test(message)) return;
    this.#silentSince = undefined;
    if (failure !== 'refused') return;
    this.#isRefused = true;
    this.#compare();
  }

  #answered(probe: Probe, receivers: number): void {
    this.#asked.delete(probe.server);
    this.#silentSince = undefined;
    this.#isRefused = false;
    this.#compare();
    probe.answeredAt = this.#clock.now();
    probe.isPassedOver = !this.#deps.connection.isCluster && receivers === 0;
    void this.#judge(probe);
  }

  async #judge(probe: Probe): Promise<void> {
    // After a blocked event loop, messages may wait on another connection. Two turns read them.
    await settle();
    await settle();
    // Another connection listens by now, or will in a moment.
    if (this.#awaited.get(probe.text) !== probe || this.#replacing || this.#isStopped) return;
    if (!isLost(probe)) return this.#heard(probe);
    const before = [...this.#lost.values()].filter(
      (other) => isLost(other) && probe.sentAt >= other.answeredAt + APART_MS,
    );
    // If each probe takes the way of another server, some of these may work.
    if (before.some(({ server, number }) => server === probe.server || number > this.#lastArrived))
      return this.#replace();
    const last = this.#lost.get(probe.server);
    // Too soon after it. The next one follows both: otherwise a server that answers slowly would never prove anything.
    if (last && isLost(last)) probe.answeredAt = last.answeredAt;
    this.#dropLost(probe.server);
    this.#lost.set(probe.server, probe);
    this.#doubt(probe);
  }

  /** Its message may only be late, above all on a cluster. If it is not, another probe finds out. */
  #doubt(probe: Probe): void {
    // The answer came late. Another one was sent since, and may be in doubt by now.
    if (probe.sentAt < this.#sentAt) return;
    const askAgain = (): void => {
      if (probe.sentAt === this.#sentAt && isLost(probe)) this.#next();
    };
    this.#doubting?.cancel();
    this.#doubting = this.#clock.setTimer(askAgain, FOLLOWS_MS, { background: true });
  }

  #heard({ server, number, text }: Probe): void {
    this.#awaited.delete(text);
    this.#dropLost(server);
    this.#lastArrived = Math.max(this.#lastArrived, number);
    this.#isLosing = false;
    this.#replaced = 0;
    this.#compare();
  }

  #replace(): void {
    this.#forget();
    this.#isLosing = true;
    const delayMs = this.#random.fraction() * backoff(REPLACED_WITHIN_MS, ++this.#replaced);
    const replace = (): void => {
      this.#replacing = undefined;
      this.#deps.connection.replaceSubscriber();
    };
    this.#replacing = this.#clock.setTimer(replace, delayMs, { background: true });
    this.#compare();
  }

  #stay(): void {
    this.#replacing?.cancel();
    this.#replacing = undefined;
  }

  #dropLost(server: ServerConnection): void {
    const lost = this.#lost.get(server);
    if (lost) this.#awaited.delete(lost.text);
    this.#lost.delete(server);
  }

  /** Earlier probes prove nothing about the present connections. */
  #forget(): void {
    this.#doubting?.cancel();
    this.#awaited.clear();
    this.#lost.clear();
  }

  /** Reports when messages stop arriving. */
  #compare(): void {
    const isHeard = this.trustedForMs > 0;
    const isWorse = this.#wasHeard && !isHeard;
    this.#wasHeard = isHeard;
    if (isWorse && !this.#isStopped) this.#deps.deliveryUncertain();
  }
}

function isLost({ hasArrived, isPassedOver }: Probe): boolean {
  return isPassedOver || !hasArrived;
}
