import type { Redis } from 'ioredis';

/** What ioredis calls, the same in ioredis 5 and 6. */
interface Inner {
  setStatus(status: string, arg?: unknown): void;
  /** How often it has tried to connect. It begins anew where it calls a connection ready, although Redis refused it. */
  retryAttempts: number;
  auth(...args: unknown[]): Promise<unknown>;
  select(...args: unknown[]): Promise<unknown>;
}

/** What Redis has said to the handshake on one socket. */
interface Handshake {
  readonly stream: Redis['stream'];
  unanswered: number;
  /** Whether the last SELECT was refused. Where Redis does not know HELLO, ioredis 6 sends AUTH, and SELECT once more. */
  isRefused: boolean;
  /** Called when all of it is answered. */
  answered: (() => void) | undefined;
}

/**
 * Makes a client 'ready' only when Redis has accepted its handshake: so all that asks for the status, or listens to the
 * event, uses no other connection. ioredis itself calls a connection ready
 * - on which SELECT was refused, for example with BUSY. Its commands would then run in database 0;
 * - before the handshake is answered, in versions before 5.8.2;
 * - that broke during its handshake, in version 5, and never makes another one (its issue 2099).
 *
 * A connection that Redis refuses is made anew. The pause before it grows with each attempt until one is accepted.
 */
export function requireHandshake(client: Redis): void {
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
  // ioredis ends a connection whose password was refused, and goes on without one where Redis needs none.
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
