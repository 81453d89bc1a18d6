import type { RedisOptions } from 'ioredis';
import { ReplicatedRedis } from '../../support/redis/replicated-redis.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

/** A primary and its replica, with a network between the two, and a stable address for the primary. */
export class ReplicaPair implements AsyncDisposable {
  private constructor(
    private primary: ReplicatedRedis,
    private replica: ReplicatedRedis,
    /** From the replica to the primary that it was made for. */
    readonly link: TcpProxy,
    private readonly front: TcpProxy,
  ) {}

  static async start(args: string[] = []): Promise<ReplicaPair> {
    const [primary, replica] = await Promise.all([ReplicatedRedis.start(args), ReplicatedRedis.start(args)]);
    const link = await TcpProxy.start(primary.port);
    await replica.admin.replicaof('127.0.0.1', link.port);
    await replica.untilCaughtUp(primary);
    let pair: ReplicaPair | undefined;
    const front = await TcpProxy.start(() => pair!.primary.port);
    return (pair = new ReplicaPair(primary, replica, link, front));
  }

  /** The `connection` for an application: the default user, even if others lock as another user. */
  get connection(): RedisOptions {
    return { host: '127.0.0.1', port: this.front.port, password: undefined };
  }

  get primaryPid(): number {
    return this.primary.pid;
  }

  /** The default user of the present primary. */
  get admin() {
    return this.primary.admin;
  }

  get replicaAdmin() {
    return this.replica.admin;
  }

  /** From now on nothing that the primary writes arrives at the replica. */
  stall(): void {
    this.link.blackHole('toClient');
  }

  heal(): void {
    this.link.heal();
  }

  /** Resolves when the replica has everything. */
  async catchUp(): Promise<void> {
    this.heal();
    await this.replica.untilCaughtUp(this.primary);
  }

  /** The primary dies, and the replica takes its place with what it has. */
  async failOver(): Promise<void> {
    const [old, next] = [this.primary, this.replica];
    await old.kill();
    this.link.cut();
    await next.admin.replicaof('NO', 'ONE');
    [this.primary, this.replica] = [next, old];
    this.front.cut();
  }

  /** The primary dies, and is the primary again before the replica could take its place: empty. */
  async restartPrimary(): Promise<void> {
    await this.primary.kill();
    await this.primary.restart();
    await this.replica.untilCaughtUp(this.primary);
  }

  /** The two change places. The old primary lives, as the replica, and keeps the connections that it has. */
  async switchOver(): Promise<void> {
    const [old, next] = [this.primary, this.replica];
    await next.untilCaughtUp(old);
    await next.admin.replicaof('NO', 'ONE');
    await old.follow(next);
    [this.primary, this.replica] = [next, old];
    await this.replica.untilCaughtUp(this.primary);
  }

  /** After a fail-over: the old primary comes back, empty, as the replica of the new one. */
  async restore(): Promise<void> {
    await this.replica.restartFollowing(this.primary);
    await this.replica.untilCaughtUp(this.primary);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.front[Symbol.asyncDispose]();
    await this.link[Symbol.asyncDispose]();
    await Promise.all([this.primary, this.replica].map((server) => server[Symbol.asyncDispose]()));
  }
}
