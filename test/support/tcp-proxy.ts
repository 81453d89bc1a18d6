import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Which connections of a lock client: the one for commands, the one that listens, or both. */
export type Connections = 'commands' | 'subscriber' | 'all';
type Direction = 'toServer' | 'toClient';

/** A network between a client and Redis that can be slow, silent in one direction, or cut. */
export class TcpProxy implements AsyncDisposable {
  /** How much later bytes arrive, each way. */
  delayMs = 0;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #held = new Map<Direction, Connections>();
  #losing: { sent: string; done: () => void } | undefined;

  private constructor(readonly targetPort: number) {
    this.#server = createServer((client) => this.#links.add(new Link(client, this)));
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Lets nothing through in this direction until {@link heal}. As on a real network, what is held back is not lost. */
  blackHole(direction: Direction, which: Connections = 'all'): void {
    this.#held.set(direction, which);
  }

  heal(): void {
    this.#held.clear();
    for (const link of this.#links) link.drain();
  }

  /** Breaks the connections. What is held back is lost. */
  cut(which: Connections = 'all'): void {
    for (const link of this.#links) if (link.is(which)) link.close();
  }

  /**
   * Lets Redis execute the next command that contains `sent`, and cuts the connection in place of the reply. Resolves
   * when that has happened.
   */
  loseReplyTo(sent: string): Promise<void> {
    return new Promise((done) => (this.#losing = { sent, done }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  isHeld(direction: Direction, link: Link): boolean {
    const which = this.#held.get(direction);
    return which !== undefined && link.is(which);
  }

  isToLose(chunk: Buffer): boolean {
    return this.#losing !== undefined && chunk.includes(this.#losing.sent);
  }

  lost(): void {
    this.#losing?.done();
    this.#losing = undefined;
  }

  forget(link: Link): void {
    this.#links.delete(link);
  }
}

/** One connection through the proxy. */
class Link {
  readonly #server: Socket;
  readonly #queues: Record<Direction, { at: number; chunk: Buffer }[]> = { toServer: [], toClient: [] };
  #isSubscriber = false;
  #losesNextReply = false;

  constructor(
    readonly client: Socket,
    readonly proxy: TcpProxy,
  ) {
    this.#server = connect({ host: '127.0.0.1', port: proxy.targetPort });
    client.on('data', (chunk) => this.#pass('toServer', chunk));
    this.#server.on('data', (chunk) => this.#pass('toClient', chunk));
    for (const socket of [client, this.#server]) {
      socket.setNoDelay(true);
      socket.on('error', () => this.close());
      socket.on('close', () => this.close());
    }
  }

  is(which: Connections): boolean {
    return which === 'all' || (which === 'subscriber') === this.#isSubscriber;
  }

  close(): void {
    this.client.destroy();
    this.#server.destroy();
    this.proxy.forget(this);
  }

  drain(): void {
    this.#drain('toServer');
    this.#drain('toClient');
  }

  #pass(direction: Direction, chunk: Buffer): void {
    if (direction === 'toServer') {
      if (/\r\nsubscribe\r\n/i.test(chunk.toString('latin1'))) this.#isSubscriber = true;
      if (this.proxy.isToLose(chunk)) this.#losesNextReply = true;
    } else if (this.#losesNextReply && !chunk.toString('latin1').startsWith('-')) {
      this.proxy.lost();
      return this.close();
    }
    const { delayMs } = this.proxy;
    this.#queues[direction].push({ at: performance.now() + delayMs, chunk });
    if (delayMs > 0) setTimeout(() => this.#drain(direction), delayMs + 1);
    else this.#drain(direction);
  }

  #drain(direction: Direction): void {
    const queue = this.#queues[direction];
    const target = direction === 'toServer' ? this.#server : this.client;
    while (queue[0] && queue[0].at <= performance.now() && !this.proxy.isHeld(direction, this)) {
      target.write(queue.shift()!.chunk);
    }
  }
}
