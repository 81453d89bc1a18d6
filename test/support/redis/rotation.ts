import type { Redis } from 'ioredis';
import type { RedisCredentials } from '../../../lib/redis/connection/credentials.js';

const USER = 'rotating';

/** A user of some servers whose password rotates, as in a managed cloud service. */
export class Rotation {
  /** The results of the provider. */
  readonly returned: string[] = [];
  #password = 'secret-0';
  #changes = 0;
  /** The minimum validity of a password after the provider has returned it. */
  lifeMs: number | undefined;

  constructor(private readonly admins: readonly Redis[]) {}

  readonly credentials = async (): Promise<RedisCredentials> => {
    const [password, lifeMs] = [this.#password, this.lifeMs];
    this.returned.push(password);
    return { username: USER, password, ...(lifeMs !== undefined && { expiresAt: Date.now() + lifeMs }) };
  };

  async begin(): Promise<void> {
    await this.#onAll('on', 'allkeys', 'allchannels', 'allcommands', `>${this.#password}`);
  }

  /** The next password is valid at once, and the last one until {@link endLast}. */
  async change(): Promise<void> {
    const next = `secret-${++this.#changes}`;
    await this.#onAll(`>${next}`);
    this.#password = next;
  }

  async endLast(): Promise<void> {
    await this.#onAll(`<secret-${this.#changes - 1}`);
  }

  /** Ends all connections of the user. */
  async kill(): Promise<void> {
    for (const admin of this.admins) await admin.call('CLIENT', 'KILL', 'USER', USER);
  }

  /** The number of logins with a password that Redis did not accept. */
  async refused(): Promise<number> {
    const logs = await Promise.all(this.admins.map((admin) => admin.call('ACL', 'LOG') as Promise<unknown[][]>));
    return logs.flat().filter((entry) => entry[entry.indexOf('reason') + 1] === 'auth').length;
  }

  async #onAll(...rules: string[]): Promise<void> {
    for (const admin of this.admins) await admin.call('ACL', 'SETUSER', USER, ...rules);
  }
}
