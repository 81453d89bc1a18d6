import type { Redis } from 'ioredis';
import { LockStoreError } from '../../kernel/store/store-error.js';
import type { DurableCommand } from './durable-command.js';
import { toStoreError, withAdvice } from '../script/failures.js';
import type { ServerConnection } from '../connection/server-connection.js';

/** The number of replicas that must have a grant, and the time to wait for them, in milliseconds. */
export interface Durability {
  readonly replicas: number;
  readonly timeoutMs: number;
}

/** The answer of a replica to WAIT, and what it would have answered to a script. */
const ON_REPLICA = /cannot be used with replica instances/;
const READONLY = { name: 'ReplyError', message: "READONLY You can't write against a read only replica." };
const ADVICE = { NOPERM: 'durability needs the command WAIT: give the ACL user +wait' };

/** The pause before Redis is asked again, if it could not answer. */
const RETRY_PAUSE_MS = 100;

export interface DurableConnectionListener {
  /** Redis has allowed or refused WAIT on a new connection. */
  tried(): void;
  idle(connection: DurableConnection): void;
  /** The connection cannot take commands, for now or for ever. */
  unusable(error: LockStoreError): void;
}

/**
 * One connection for durable commands. It sends a batch of scripts, and then a WAIT. That blocks the connection until
 * enough replicas have everything that was written on it, or until it times out.
 *
 * @see https://redis.io/docs/latest/commands/wait/
 */
export class DurableConnection {
  /** deliveryUncertain: it is not known whether Redis allows WAIT. */
  #state: 'deliveryUncertain' | 'proving' | 'refused' | 'idle' | 'busy' = 'deliveryUncertain';
  #batch: DurableCommand[] = [];

  constructor(
    readonly server: ServerConnection,
    private readonly durability: Durability,
    private readonly listener: DurableConnectionListener,
  ) {
    server.client.on('ready', () => this.prove());
    server.client.on('close', () => (this.#state = 'deliveryUncertain'));
    server.connect();
  }

  get isTried(): boolean {
    return this.isProven || this.#state === 'refused';
  }

  get isProven(): boolean {
    return this.#state === 'idle' || this.#state === 'busy';
  }

  get isIdle(): boolean {
    return this.#state === 'idle' && this.server.isConnected;
  }

  /** Finds out whether Redis allows WAIT, before it grants a lock that could not be confirmed. */
  prove(): void {
    if (!this.server.isConnected || (this.#state !== 'deliveryUncertain' && this.#state !== 'refused')) return;
    const isNew = this.#state === 'deliveryUncertain';
    this.#state = 'proving';
    void this.server.client
      .wait(0, 1)
      .then(
        () => this.#rest('proving'),
        (error: unknown) => this.#deliveryUncertain(error),
      )
      .then(() => {
        if (isNew && this.isTried) this.listener.tried();
      });
  }

  /** Sends a command before the next WAIT. Only to be called on an idle connection, and until {@link endBatch}. */
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

  #deliveryUncertain(error: unknown): void {
    // The connection broke in the meantime.
    if (this.#state !== 'proving') return;
    const isOnReplica = ON_REPLICA.test((error as Partial<Error>).message ?? '');
    const { failure, message } = withAdvice(this.server.explain(isOnReplica ? READONLY : error), ADVICE);
    if (isOnReplica) this.#leave();
    else if (failure === 'refused') this.#state = 'refused';
    else {
      this.#state = 'deliveryUncertain';
      // A passing error, such as LOADING.
      setTimeout(() => this.prove(), RETRY_PAUSE_MS).unref();
    }
    this.listener.unusable(new LockStoreError(failure === 'refused' ? failure : 'notExecuted', message));
  }

  /** Another server may be the primary. After a pause: what leads here may lead here for a while. */
  #leave(): void {
    const { client } = this.server;
    const { stream } = client;
    setTimeout(() => {
      if (client.stream === stream) client.disconnect(true);
    }, RETRY_PAUSE_MS).unref();
  }

  /** Never rejects. */
  async #confirm(batch: DurableCommand[]): Promise<void> {
    const { client } = this.server;
    const { stream } = client;
    for (let pending = batch; pending.length > 0;) {
      await this.#settle(client, pending);
      // A script that Redis did not know was sent again, after the WAIT.
      await Promise.all(pending.map((command) => command.answer));
      pending = pending.filter((command) => command.isUnconfirmed);
      if (client.stream === stream) continue;
      // A WAIT on a new connection proves nothing about commands of the old one. The server may be another one, too.
      for (const command of pending)
        command.doubt(new LockStoreError('unknown', 'the connection broke before the replicas confirmed it'));
      return;
    }
    this.#rest('busy');
  }

  /** Waits for the replicas, and settles the commands that were executed before. */
  #settle(client: Redis, commands: readonly DurableCommand[]): Promise<void> {
    const { replicas, timeoutMs } = this.durability;
    const executed = (): DurableCommand[] => commands.filter((command) => command.isUnconfirmed);
    // Runs right after the reply to the WAIT: the reply to the next command may have come with it.
    return client.wait(replicas, timeoutMs).then(
      (have) => {
        const doubt = have < replicas ? tooFew(have, this.durability) : undefined;
        for (const command of executed()) {
          if (doubt) command.doubt(doubt);
          else command.confirm();
        }
      },
      (error: unknown) => {
        // It is not known whether the replicas have the changes.
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
    `only ${have} of ${replicas} replicas have the changes after ${timeoutMs} ms (durability). ` +
      'Check that the replicas are connected to this primary and keep up, or give them more time',
  );
}
