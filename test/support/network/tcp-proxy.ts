import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { commandOf, isScript } from './redis-requests.js';
import { sendAgain, type SentRequest } from './request-replay.js';
import { type Connections, type Direction, Link, type Network, type Refusing, type ReplyLoss } from './tcp-link.js';

export type { Connections };

/** The effect of refusing a command, see {@link TcpProxy.refuse}. */
export interface Refusal {
  /** The number of refusals. */
  readonly count: number;
  /** From now on, Redis gets it. */
  allow(): void;
}

/** A network between a client and Redis that can be slow, silent in one direction, lossy, or cut. */
export class TcpProxy implements AsyncDisposable, Network {
  /** The delay of bytes, each way. */
  delayMs = 0;
  readonly #targetPort: () => number;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #held = new Map<Direction, Connections>();
  readonly #losses = new Set<ReplyLoss>();
  readonly #refusals = new Set<Refusing>();
  #dropping: Connections | undefined;
  #lastScript: SentRequest | undefined;
  #replayed: (() => void) | undefined;
  #subscribed: (() => void) | undefined;

  private constructor(targetPort: number | (() => number)) {
    this.#targetPort = typeof targetPort === 'number' ? () => targetPort : targetPort;
    this.#server = createServer((client) => {
      const port = this.#targetPort();
      this.#links.add(new Link(client, this, port));
      void this.#replay(port);
    });
  }

  /** @param targetPort of the server; as a function it is asked for each new connection */
  static async start(targetPort: number | (() => number)): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Lets nothing through in this direction until {@link heal}. As on a real network, what is held back is not lost. */
  blackHole(direction: Direction, which: Connections = 'all'): void {
    this.#held.set(direction, which);
  }

  /**
   * Drops every byte, both ways, until {@link heal}. Then resets the connections that lost some: TCP can't continue
   * otherwise, and so never loses just a part of a stream.
   */
  dropAll(which: Connections = 'all'): void {
    this.#dropping = which;
  }

  /**
   * Silently drops every byte of the current connections, both ways, like a firewall that has forgotten them. New ones
   * work. {@link heal} resets those that have lost some.
   */
  forget(which: Connections = 'all'): void {
    for (const link of this.#of(which)) link.loseAll();
  }

  /** Ends lasting faults. Pending losses of replies and replays of scripts are cancelled silently. */
  heal(): void {
    this.#held.clear();
    this.#losses.clear();
    this.#refusals.clear();
    this.#dropping = undefined;
    this.#replayed = undefined;
    for (const link of this.#links) link.heal();
  }

  /** Breaks the connections. What is held back is lost. */
  cut(which: Connections = 'all'): void {
    for (const link of this.#of(which)) link.close();
  }

  /** Breaks the connections with an RST, at both ends. */
  reset(which: Connections = 'all'): void {
    for (const link of this.#of(which)) link.reset();
  }

  /**
   * The client reads an end (FIN), and what it writes goes nowhere. Redis believes in the connections until {@link heal}:
   * a subscriber is still told, and counted.
   */
  halfClose(which: Connections = 'all'): void {
    for (const link of this.#of(which)) link.halfClose();
  }

  /**
   * Lets Redis execute the next command that contains `sent`, and cuts the connection in place of the reply. Resolves
   * when that has happened. A reply that is an error, such as NOSCRIPT, arrives: nothing was executed.
   */
  loseReplyTo(sent: string): Promise<void> {
    return this.#loseReply((request) => request.includes(sent));
  }

  /** The same for the next script, whichever it is. */
  loseNextReply(which: Connections = 'all'): Promise<void> {
    return this.#loseReply((request, link) => link.is(which) && isScript(request));
  }

  /**
   * Answers a command with an error, such as "BUSY", on every connection until it is allowed. Redis does not get it.
   *
   * @param command its name, or its name and the beginning of its first argument
   */
  refuse(command: string, error: string): Refusal {
    const [name, first = ''] = command.toLowerCase().split(' ') as [string, string?];
    let count = 0;
    const refusing: Refusing = {
      isFor: (request) =>
        commandOf(request) === name && request.toString('latin1').toLowerCase().includes(`\r\n${first}`),
      refuse: () => {
        count++;
        return error;
      },
    };
    this.#refusals.add(refusing);
    return {
      get count() {
        return count;
      },
      allow: () => this.#refusals.delete(refusing),
    };
  }

  /**
   * Replays the last script to Redis when the next connection is made, on a connection of its own whose replies are
   * discarded. Resolves when Redis has executed it.
   */
  replayOnReconnect(): Promise<void> {
    return new Promise((done) => (this.#replayed = done));
  }

  /** Resolves when the client subscribes on another connection. */
  nextSubscriber(): Promise<void> {
    return new Promise((subscribed) => (this.#subscribed = subscribed));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.heal();
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  isHeld(direction: Direction, link: Link): boolean {
    const which = this.#held.get(direction);
    return which !== undefined && link.is(which);
  }

  isDropping(link: Link): boolean {
    return this.#dropping !== undefined && link.is(this.#dropping);
  }

  refusalOf(request: Buffer, link: Link): string | undefined {
    return [...this.#refusals].find((refusing) => refusing.isFor(request, link))?.refuse();
  }

  takeLoss(request: Buffer, link: Link): ReplyLoss | undefined {
    const loss = [...this.#losses].find((candidate) => candidate.isFor(request, link));
    if (loss) this.#losses.delete(loss);
    return loss;
  }

  giveBack(loss: ReplyLoss): void {
    this.#losses.add(loss);
  }

  sent(script: SentRequest): void {
    this.#lastScript = script;
  }

  subscribed(): void {
    this.#subscribed?.();
    this.#subscribed = undefined;
  }

  ended(link: Link): void {
    this.#links.delete(link);
  }

  #of(which: Connections): Link[] {
    return [...this.#links].filter((link) => link.is(which));
  }

  #loseReply(isFor: ReplyLoss['isFor']): Promise<void> {
    return new Promise((happened) => this.#losses.add({ isFor, happened }));
  }

  async #replay(port: number): Promise<void> {
    const [replayed, script] = [this.#replayed, this.#lastScript];
    if (replayed === undefined || script === undefined) return;
    this.#replayed = undefined;
    if (await sendAgain(port, script)) replayed();
    else this.#replayed ??= replayed;
  }
}
