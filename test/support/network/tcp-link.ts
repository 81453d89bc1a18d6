import { connect, type Socket } from 'node:net';
import { commandOf, endsWithError, isScript, Marker, RequestSplitter } from './redis-requests.js';
import type { SentRequest } from './request-replay.js';

export type Direction = 'toServer' | 'toClient';
/** Which connections of a lock client: the one for commands, the one that listens, or both. */
export type Connections = 'commands' | 'subscriber' | 'all';

/** A reply that shall not arrive, though Redis executes the command. */
export interface ReplyLoss {
  isFor(request: Buffer, link: Link): boolean;
  happened(): void;
}

/** An error in place of a command. Redis does not see the command. */
export interface Refusing {
  isFor(request: Buffer, link: Link): boolean;
  /** Returns the error, for one command. */
  refuse(): string;
}

/** The callbacks of a link to its network. */
export interface Network {
  readonly delayMs: number;
  refusalOf(request: Buffer, link: Link): string | undefined;
  isHeld(direction: Direction, link: Link): boolean;
  isDropping(link: Link): boolean;
  /** Gives a loss to this link alone, until it has happened or is given back. */
  takeLoss(request: Buffer, link: Link): ReplyLoss | undefined;
  giveBack(loss: ReplyLoss): void;
  sent(script: SentRequest): void;
  subscribed(): void;
  ended(link: Link): void;
}

/** Behind a command whose reply is to be lost: until Redis has come to the marker, nothing arrives. */
interface Losing {
  readonly loss: ReplyLoss;
  readonly marker: Marker;
  replies: Buffer;
}

/** In the place of a command that is refused: until Redis has come to the marker, the replies before it are not complete. */
interface Refused {
  readonly error: string;
  readonly marker: Marker;
}

/** One connection through a {@link TcpProxy}. */
export class Link {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #network: Network;
  readonly #splitter = new RequestSplitter();
  readonly #handshake: Buffer[] = [];
  readonly #queues: Record<Direction, { at: number; chunk: Buffer }[]> = { toServer: [], toClient: [] };
  #isSubscriber = false;
  #isHalfClosed = false;
  #hasGap = false;
  #losing: Losing | undefined;
  readonly #refused: Refused[] = [];
  #unsplit: Buffer = Buffer.alloc(0);

  constructor(client: Socket, network: Network, port: number) {
    this.#client = client;
    this.#network = network;
    this.#server = connect({ host: '127.0.0.1', port });
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk));
    this.#server.on('data', (chunk: Buffer) => this.#fromServer(chunk));
    for (const socket of [client, this.#server]) {
      socket.setNoDelay(true);
      socket.on('error', () => this.#closed(socket));
      socket.on('close', () => this.#closed(socket));
    }
  }

  is(which: Connections): boolean {
    return which === 'all' || (which === 'subscriber') === this.#isSubscriber;
  }

  close(): void {
    if (this.#losing) this.#network.giveBack(this.#losing.loss);
    this.#losing = undefined;
    this.#client.destroy();
    this.#server.destroy();
    this.#network.ended(this);
  }

  /** Resets both ends (RST), which is an error and not an end. */
  reset(): void {
    this.#client.resetAndDestroy();
    this.#server.resetAndDestroy();
    this.close();
  }

  /** The client reads an end (FIN), and what it writes goes nowhere; Redis believes in the connection until {@link heal}. */
  halfClose(): void {
    this.#isHalfClosed = true;
    this.#client.end();
  }

  loseAll(): void {
    this.#hasGap = true;
  }

  heal(): void {
    if (this.#hasGap) return this.reset();
    if (this.#isHalfClosed) return this.close();
    this.#drain('toServer');
    this.#drain('toClient');
  }

  #closed(socket: Socket): void {
    if (socket === this.#server || !this.#isHalfClosed) this.close();
  }

  #fromClient(chunk: Buffer): void {
    for (const request of this.#splitter.push(chunk)) {
      const command = commandOf(request);
      if (command === 'subscribe' && !this.#isSubscriber) {
        this.#isSubscriber = true;
        this.#network.subscribed();
      }
      if (['auth', 'hello', 'select'].includes(command)) this.#handshake.push(request);
      const error = this.#network.refusalOf(request, this);
      if (error !== undefined) {
        this.#refused.push({ error, marker: new Marker() });
        this.#pass('toServer', this.#refused.at(-1)!.marker.request);
        continue;
      }
      if (!this.#pass('toServer', request)) continue;
      if (isScript(request)) this.#network.sent({ handshake: this.#handshake, request });
      this.#mark(request);
    }
    this.#drainSoon('toServer');
  }

  #fromServer(chunk: Buffer): void {
    const replies = this.#withRefusals(chunk);
    if (this.#losing === undefined) this.#pass('toClient', replies);
    else this.#lose(this.#losing, replies);
    this.#drainSoon('toClient');
  }

  /** With the errors in the place of the markers, each after the replies to what was sent before it. */
  #withRefusals(chunk: Buffer): Buffer {
    if (this.#refused.length === 0) return chunk;
    const complete: Buffer[] = [];
    let rest = Buffer.concat([this.#unsplit, chunk]);
    for (let [next] = this.#refused; next; [next] = this.#refused) {
      const replies = next.marker.split(rest);
      if (replies === undefined) break;
      complete.push(replies.before, Buffer.from(`-${next.error}\r\n`));
      rest = Buffer.from(replies.after);
      this.#refused.shift();
    }
    const isDone = this.#refused.length === 0;
    this.#unsplit = isDone ? Buffer.alloc(0) : rest;
    return Buffer.concat(isDone ? [...complete, rest] : complete);
  }

  #mark(request: Buffer): void {
    const loss = this.#losing ? undefined : this.#network.takeLoss(request, this);
    if (loss === undefined) return;
    this.#losing = { loss, marker: new Marker(), replies: Buffer.alloc(0) };
    this.#pass('toServer', this.#losing.marker.request);
  }

  #lose(losing: Losing, chunk: Buffer): void {
    losing.replies = Buffer.concat([losing.replies, chunk]);
    const replies = losing.marker.split(losing.replies);
    if (replies === undefined) return;
    this.#losing = undefined;
    if (endsWithError(replies.before)) {
      // It did not execute it, as when it does not know the script.
      this.#network.giveBack(losing.loss);
      this.#pass('toClient', Buffer.concat([replies.before, replies.after]));
      return;
    }
    this.close();
    losing.loss.happened();
  }

  /** False when these bytes are lost. */
  #pass(direction: Direction, chunk: Buffer): boolean {
    if (this.#network.isDropping(this)) this.#hasGap = true;
    if (this.#hasGap || this.#isHalfClosed) return false;
    this.#queues[direction].push({ at: performance.now() + this.#network.delayMs, chunk });
    return true;
  }

  #drainSoon(direction: Direction): void {
    const { delayMs } = this.#network;
    if (delayMs > 0) this.#drainAt(direction, performance.now() + delayMs);
    else this.#drain(direction);
  }

  /** A timer counts from when its turn of the event loop began, so it may ring too early. */
  #drainAt(direction: Direction, at: number): void {
    const leftMs = at - performance.now();
    if (leftMs > 0) setTimeout(() => this.#drainAt(direction, at), Math.ceil(leftMs));
    else this.#drain(direction);
  }

  #drain(direction: Direction): void {
    const queue = this.#queues[direction];
    const target = direction === 'toServer' ? this.#server : this.#client;
    target.cork();
    while (queue[0] && queue[0].at <= performance.now() && !this.#network.isHeld(direction, this)) {
      target.write(queue.shift()!.chunk);
    }
    target.uncork();
  }
}
