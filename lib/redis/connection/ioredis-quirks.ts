import type { Cluster, Redis } from 'ioredis';
import { inRootContext } from '../../kernel/util/async-contexts.js';

/** The timer behind the option `socketTimeout` of ioredis, the same in ioredis 5 and 6. */
interface SilenceTimer {
  /** With each command, ioredis makes a timer if there is none. */
  socketTimeoutTimer: NodeJS.Timeout | undefined;
  setSocketTimeout(): void;
  readonly commandQueue: { readonly length: number };
}

/** The number of checks of a silent connection before it is given up. */
const LOOKS = 10;

/** Works around five quirks of ioredis. Call this before anything else listens to the client. */
export function mendQuirks(client: Redis): void {
  requireHandshake(client);
  takeLateErrors(client);
  lookForSilence(client);
  connectInRootContext(client);
  readAtOnce(client);
}

/**
 * ioredis listens to one error of a socket. A TLS socket that is ended during its handshake may have two: the
 * certificate is refused, then the server's alert is read. Without a listener, the second one would end the process.
 * Each socket gets one as soon as it is made: before 'connect' there is no event that brings it.
 */
function takeLateErrors(client: Redis): void {
  // It makes the sockets of a client, the same in ioredis 5 and 6.
  type Connector = { connect(...args: unknown[]): Promise<Redis['stream']> };
  const { connector } = client as unknown as { connector: Connector };
  const connect = connector.connect.bind(connector);
  connector.connect = async (...args) => {
    const stream = await connect(...args);
    return stream.on('error', () => {});
  };
}

/**
 * For the option `socketTimeout`, ioredis makes and clears a timer for nearly every command, and adds and removes a
 * listener: a tenth of what a free lock costs. Here one timer looks from time to time whether anything has arrived, as
 * long as commands are open. So a silent connection is given up after `socketTimeout`, or a tenth of it later.
 */
function lookForSilence(client: Redis): void {
  const { socketTimeout } = client.options;
  if (!socketTimeout) return;
  const timers = client as unknown as SilenceTimer;
  // ioredis 5 leaves it to run.
  client.on('close', () => {
    clearInterval(timers.socketTimeoutTimer);
    timers.socketTimeoutTimer = undefined;
  });
  timers.setSocketTimeout = () => {
    let { stream } = client;
    let { bytesRead } = stream;
    // The first look may come as soon as the command is sent, so it does not count.
    let silentLooks = -1;
    const stop = (): void => {
      clearInterval(timer);
      timers.socketTimeoutTimer = undefined;
    };
    const look = (): void => {
      if (timers.commandQueue.length === 0) return stop();
      if (stream !== client.stream || stream.bytesRead !== bytesRead) {
        ({ stream } = client);
        ({ bytesRead } = stream);
        silentLooks = -1;
      } else if (++silentLooks === LOOKS) {
        stop();
        stream.destroy(new Error(`Socket timeout. Expecting data, but didn't receive any in ${socketTimeout}ms.`));
      }
    };
    // It lasts longer than the call that has sent the command.
    const timer = inRootContext(() => setInterval(look, socketTimeout / LOOKS).unref());
    timers.socketTimeoutTimer = timer;
  };
}

/**
 * Makes every connection of a client in the root async context, also when the client reconnects by itself. A socket
 * runs its listeners in the context in which it was made. That could be the context of a request during which a module
 * was loaded or a command failed.
 */
export function connectInRootContext(client: Redis | Cluster): void {
  const connect: () => Promise<void> = client.connect.bind(client);
  // ioredis calls it too, when a connection has ended.
  client.connect = () => inRootContext(connect);
}

/**
 * Replaces a connection. One that is just being made is given up as soon as it is made: if it were given up earlier,
 * ioredis would never connect again.
 */
export function reconnect(client: Redis): void {
  if (client.status === 'ready' || client.status === 'connect') return client.disconnect(true);
  if (client.status !== 'connecting') return;
  const giveUp = (): void => client.disconnect(true);
  client.once('connect', giveUp).once('close', () => client.off('connect', giveUp));
}

/**
 * Node emits socket data at once if a listener was added by `on` or `once`. ioredis uses `prependListener`: without
 * another listener, each message waits in a buffer for a later tick.
 */
function readAtOnce(client: Redis): void {
  client.on('connect', () => client.stream.once('data', () => {}));
}

/** Internals of ioredis, the same in ioredis 5 and 6. */
interface Inner {
  setStatus(status: string, arg?: unknown): void;
  /**
   * The number of its attempts to connect. ioredis resets it when it calls a connection ready, although Redis refused
   * it.
   */
  retryAttempts: number;
  auth(...args: unknown[]): Promise<unknown>;
  select(...args: unknown[]): Promise<unknown>;
}

interface Handshake {
  readonly stream: Redis['stream'];
  unanswered: number;
  /**
   * `true` if the last SELECT was refused. If Redis does not know HELLO, ioredis 6 sends AUTH, and SELECT once more.
   */
  isRefused: boolean;
  answered: (() => void) | undefined;
}

/**
 * Makes a client 'ready' only when Redis has accepted its handshake: so code that reads the status, or listens to the
 * event, uses no other connection. ioredis itself calls a connection ready
 * - on which SELECT was refused, for example with BUSY. Its commands would then run in database 0;
 * - before the handshake is answered, in versions before 5.8.2;
 * - that broke during its handshake, in version 5, and never makes another one (its issue 2099).
 *
 * A connection that Redis refuses is replaced. The pause before it grows with each attempt until one is accepted.
 */
function requireHandshake(client: Redis): void {
  const inner = client as unknown as Inner;
  const setStatus = inner.setStatus.bind(client);
  let handshake: Handshake | undefined;
  let failures = 0;

  const present = (): Handshake => {
    const { stream } = client;
    if (handshake?.stream !== stream) handshake = { stream, unanswered: 0, isRefused: false, answered: undefined };
    return handshake;
  };
  const watch = (command: 'auth' | 'select', note: (on: Handshake, isRefused: boolean) => void): void => {
    const send = inner[command].bind(client);
    inner[command] = (...args) => {
      const on = present();
      on.unanswered++;
      const answer = send(...args);
      const answered = (isRefused: boolean): void => {
        note(on, isRefused);
        if (--on.unanswered === 0) on.answered?.();
      };
      answer.then(
        () => answered(false),
        () => answered(true),
      );
      return answer;
    };
  };
  // ioredis ends a connection whose password was refused, and continues without one if Redis needs none.
  watch('auth', () => {});
  watch('select', (on, isRefused) => (on.isRefused = isRefused));

  const judge = (on: Handshake): void => {
    if (client.stream !== on.stream || client.status !== 'connect' || !on.stream.writable) return;
    if (on.isRefused) return client.disconnect(true);
    failures = 0;
    setStatus('ready');
  };
  inner.setStatus = (status, arg) => {
    if (status === 'ready') {
      const on = present();
      if (on.unanswered === 0) judge(on);
      else on.answered = () => judge(on);
      return;
    }
    // ioredis counts one more, and asks how long to wait.
    if (status === 'close') inner.retryAttempts = failures++;
    setStatus(status, arg);
  };
}
