import type { Redis } from 'ioredis';
import { LockStoreError } from '../../core/store/lock-store.js';
import type { DurableCommand } from './durable-command.js';
import type { Durability } from './durability.js';
import { toStoreError } from '../script/failures.js';
import type { ServerConnection } from '../connection/server-connection.js';

/** What Redis says where WAIT makes no sense. The scripts find out that it is a replica, too, and in better words. */
const ON_REPLICA = /cannot be used with replica instances/;
const ADVICE = { NOPERM: 'durability needs the command WAIT: give the ACL user +wait' };

/** Until Redis is asked again that could not say it. */
const RETRY_PAUSE_MS = 100;

/** Who hears of a {@link DurableConnection}. */
export interface DurableConnectionListener {
  /** It is known what Redis says to WAIT on a new connection. */
  tried(): void;
  /** It can take commands. */
  idle(connection: DurableConnection): void;
  /** It cannot, for now or for ever. */
  unusable(error: LockStoreError): void;
}

/**
 * One connection for commands that replicas have to have: a batch of scripts and then a WAIT, which blocks the connection until
 * enough replicas have everything that was written on it, or its time is over.
 *
 * @see https://redis.io/docs/latest/commands/wait/
 */
export class DurableConnection {
  /** Unproven: whether Redis lets us wait is not known. */
  #state: 'unproven' | 'proving' | 'refused' | 'idle' | 'busy' = 'unproven';
  #batch: DurableCommand[] = [];

  constructor(
    private readonly server: ServerConnection,
    private readonly durability: Durability,
    private readonly listener: DurableConnectionListener,
  ) {
    server.client.on('ready', () => this.prove());
    server.client.on('close', () => (this.#state = 'unproven'));
    server.connect();
  }

  get isConnected(): boolean {
    return this.server.isConnected;
  }

  /** Whether it is known what Redis says to WAIT. */
  get isTried(): boolean {
    return this.isProven || this.#state === 'refused';
  }

  get isProven(): boolean {
    return this.#state === 'idle' || this.#state === 'busy';
  }

  get isIdle(): boolean {
    return this.#state === 'idle' && this.isConnected;
  }

  describeTrouble(): string {
    return this.server.describeTrouble();
  }

  /** Finds out whether Redis lets us wait, before anything is granted that could not be confirmed. */
  prove(): void {
    if (!this.isConnected || (this.#state !== 'unproven' && this.#state !== 'refused')) return;
    const isNew = this.#state === 'unproven';
    this.#state = 'proving';
    void this.server.client
      .wait(0, 1)
      .then(
        () => this.#rest('proving'),
        (error: unknown) => this.#unproven(error),
      )
      .then(() => {
        if (isNew && this.isTried) this.listener.tried();
      });
  }

  /** Sends a command with the next WAIT. Only between being idle and {@link endBatch}. */
  add(command: DurableCommand): void {
    if (this.#state === 'idle') this.#state = 'busy';
    this.#batch.push(command);
    command.send(this.server.client);
  }

  endBatch(): void {
    const batch = this.#batch;
    this.#batch = [];
    void this.#confirm(batch);
  }

  reconnect(): void {
    this.server.reconnect();
  }

  close(): void {
    this.server.close();
  }

  #unproven(error: unknown): void {
    // Broken meanwhile.
    if (this.#state !== 'proving') return;
    this.#state = 'unproven';
    if (ON_REPLICA.test((error as Partial<Error>).message ?? '')) return this.server.client.disconnect(true);
    const { failure, message } = toStoreError(error, ADVICE);
    if (failure === 'refused') this.#state = 'refused';
    // Such as LOADING.
    else setTimeout(() => this.prove(), RETRY_PAUSE_MS).unref();
    this.listener.unusable(new LockStoreError(failure === 'refused' ? failure : 'notExecuted', message));
  }

  /** Never rejects. */
  async #confirm(batch: DurableCommand[]): Promise<void> {
    const { client } = this.server;
    const { stream } = client;
    for (let pending = batch; pending.length > 0;) {
      await this.#settle(client, pending);
      // What was sent after the WAIT: a script that Redis did not know.
      await Promise.all(pending.map((command) => command.answer));
      pending = pending.filter((command) => command.isUnconfirmed);
      if (client.stream === stream) continue;
      // A WAIT on another connection would say nothing about it: the server may be another one, too.
      for (const command of pending)
        command.doubt(new LockStoreError('unknown', 'the connection broke before replicas had it'));
      return;
    }
    this.#rest('busy');
  }

  /** Waits for the replicas, and tells the commands that were executed before. */
  #settle(client: Redis, commands: readonly DurableCommand[]): Promise<void> {
    const { replicas, timeoutMs } = this.durability;
    const executed = (): DurableCommand[] => commands.filter((command) => command.isUnconfirmed);
    // Right behind the reply, in the order of the replies: the next one may have come with it.
    return client.wait(replicas, timeoutMs).then(
      (have) => {
        const doubt = have < replicas ? tooFew(have, this.durability) : undefined;
        for (const command of executed()) {
          if (doubt) command.doubt(doubt);
          else command.confirm();
        }
      },
      (error: unknown) => {
        // Whether replicas have it nobody knows.
        const doubt = new LockStoreError('unknown', toStoreError(error, ADVICE).message);
        for (const command of executed()) command.doubt(doubt);
      },
    );
  }

  #rest(from: 'proving' | 'busy'): void {
    if (this.#state !== from) return;
    this.#state = 'idle';
    this.listener.idle(this);
  }
}

function tooFew(have: number, { replicas, timeoutMs }: Durability): LockStoreError {
  return new LockStoreError(
    'unknown',
    `only ${have} of ${replicas} replicas have it after ${timeoutMs} ms (durability). ` +
      'Check that the replicas are connected to this primary and keep up, or give them more time',
  );
}
