import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { hostAndPort, parseHostAndPort } from '../script/address.js';
import { ClusterServers } from './cluster-servers.js';
import { ClusterTopology } from './cluster-topology.js';
import type { Connection, LockServer } from '../connection/connection.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import type { Durability } from '../durability/durable-connection.js';
import type { OwnClients } from '../connection/own-clients.js';
import { OwnSubscriber } from '../connection/own-subscriber.js';
import { safeOptions } from '../connection/ioredis-options.js';
import { ASKING } from '../script/script-runner.js';
import type { ServerConnection } from '../connection/server-connection.js';
import { slotOf, SLOTS } from './slot.js';
import { mendQuirks } from '../connection/ioredis-quirks.js';
import { entryOf } from '../../kernel/util/objects.js';

/** The maximum number of redirections to another node for one command. */
const MAX_REDIRECTIONS = 5;

/** The answer of a node when another node has the slot, or is about to have it. */
const REDIRECTION = /^(MOVED|ASK) (\d+) (\S+)$/;

/** The connections of one instance to a cluster: one for commands to each primary, and one for messages. */
export class ClusterConnection implements Connection {
  readonly isCluster = true;
  readonly topology = 'cluster';
  /** A node that publishes a message does not know whether the others get it. */
  readonly mayLoseMessages = true;
  readonly subscriber: ClusterSubscriber;
  readonly outerKeyPrefix: string;
  readonly #topology: ClusterTopology;
  readonly #servers: ClusterServers;

  /** @throws InvalidLockOptionsError if the key prefix would put the keys of a lock into different slots */
  constructor(
    model: Cluster,
    instanceId: string,
    leaseMs: number,
    private readonly scripts: ScriptSender,
    readonly clients: OwnClients,
    durability?: Durability,
  ) {
    const { keyPrefix, redisOptions } = model.options;
    this.outerKeyPrefix = (keyPrefix ?? redisOptions?.keyPrefix ?? '').toString();
    checkPrefix(this.outerKeyPrefix);
    const options = safeOptions(instanceId, leaseMs);
    this.#topology = new ClusterTopology(model, clients, () => {
      this.#servers.follow();
      this.subscriber.nodesChanged();
    });
    this.#servers = new ClusterServers(this.#topology, options, clients, durability);
    const nodes = () => this.#topology.nodes('all');
    this.subscriber = new ClusterSubscriber(nodes, options, clients);
  }

  get isConnected(): boolean {
    const { primaries } = this.#servers;
    return primaries.length > 0 && primaries.every((server) => server.isConnected);
  }

  connect(): void {
    this.#topology.connect();
  }

  onConnected(listener: () => void): void {
    this.#servers.onConnected(listener);
  }

  route<T>(call: ScriptCall<T>): Promise<T> {
    try {
      const slot = slotOf(call.keys[0]!);
      const address = this.#topology.addressOf(slot);
      if (address === undefined) throw this.#unknown(slot);
      return this.#send(this.#servers.at(address), atOnce(call), MAX_REDIRECTIONS);
    } catch (error) {
      this.#topology.refresh();
      return Promise.reject(error);
    }
  }

  troubleAt(key: string): LockStoreError | undefined {
    const slot = slotOf(key);
    const address = this.#topology.addressOf(slot);
    return address === undefined ? this.#unknown(slot) : this.#servers.known(address)?.trouble;
  }

  servers(): readonly ServerConnection[] {
    const { primaries } = this.#servers;
    if (primaries.length === 0) throw this.#unknown();
    return primaries;
  }

  neededServers(turn: number): readonly LockServer[] {
    const slotsAt = new Map<string, number[]>();
    for (let slot = 0; slot < SLOTS; slot++) {
      const address = this.#topology.addressOf(slot);
      if (address === undefined) throw this.#unknown(slot);
      entryOf(slotsAt, address, () => []).push(slot);
    }
    const sorted = [...slotsAt].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([address, slots]) => ({ server: this.#servers.at(address), slot: slots[turn % slots.length]! }));
  }

  serverInTurn(turn: number): LockServer | undefined {
    const { primaries } = this.#servers;
    const server = primaries[turn % primaries.length];
    if (!server) return undefined;
    const slot = this.#topology.firstSlotAt(hostAndPort(server.client));
    return slot === undefined ? undefined : { server, slot };
  }

  replaceSubscriber(): void {
    this.subscriber.replace();
  }

  describeTrouble(): string {
    const trouble = this.#servers.primaries.find((server) => !server.isConnected);
    return trouble ? trouble.describeTrouble() : this.#unknown().message;
  }

  close(): Promise<void> {
    this.#topology.close();
    this.#servers.close();
    this.subscriber.close();
    return this.clients.closed();
  }

  trusts(key: string, fence: string, sentAt: number): boolean {
    const address = this.#topology.addressOf(slotOf(key));
    const server = address === undefined ? undefined : this.#servers.known(address);
    return server?.trusts(this.scripts, fence, sentAt) ?? false;
  }

  #send<T>(
    server: ServerConnection,
    call: ScriptCall<T>,
    redirections: number,
    scripts: ScriptSender = this.scripts,
  ): Promise<T> {
    return server.sendIfConnected(scripts, call, (error) => this.#failed(server, call, error, redirections));
  }

  async #failed<T>(server: ServerConnection, call: ScriptCall<T>, error: unknown, redirections: number): Promise<T> {
    const [, kind, slot, to] = REDIRECTION.exec((error as Partial<Error>).message ?? '') ?? [];
    if (to === undefined || redirections === 0) {
      // Whatever went wrong, the slot table may be out of date.
      this.#topology.refresh();
      throw server.explain(error);
    }
    // A node that does not know its own host leaves the host out.
    const { host, port } = parseHostAndPort(to);
    const address = this.#topology.reachable(host ? to : `${server.client.options.host}:${port}`);
    const next = this.#servers.at(address);
    // Or else it is moving to that node.
    if (kind === 'MOVED') this.#topology.moved(Number(slot), address);
    return this.#send(next, call, redirections - 1, kind === 'MOVED' ? this.scripts : ASKING);
  }

  /** @param slot the slot without a known node; left out if no node at all is known */
  #unknown(slot?: number): LockStoreError {
    const { lastError, isKnown } = this.#topology;
    const [yet, why] = lastError ? ['', ` (${lastError.message})`] : [' yet', ''];
    if (slot !== undefined && isKnown) {
      return new LockStoreError(
        'notExecuted',
        `no node of the Redis Cluster is known${yet} to have slot ${slot}${why}`,
      );
    }
    return new LockStoreError(
      'notExecuted',
      `not connected to the Redis Cluster at ${this.#topology.startNodes}${yet}${why}`,
    );
  }
}

/**
 * Adds a key that never exists. While a slot moves, a node runs a script only if it has all of its keys, and stops it
 * halfway at a key that it has just deleted. Because of the additional key, the node answers TRYAGAIN before the script
 * starts.
 */
function atOnce<T>(call: ScriptCall<T>): ScriptCall<T> {
  const { keys } = call;
  return keys.length === 1 ? call : { ...call, keys: [...keys, `${keys[0]}:never`] };
}

/** A brace in the prefix decides on the slot, and the keys of a lock and its fence must be in the same one. */
function checkPrefix(keyPrefix: string): void {
  if (!keyPrefix.includes('{') || /^[^{]*\{[^}]+\}/.test(keyPrefix)) return;
  throw new InvalidLockOptionsError(
    'keyPrefix of the Cluster must contain no brace, or one complete hash tag such as {app}:. ' +
      'Otherwise the keys of a lock are in different slots.',
    'connection',
  );
}

/**
 * Listens on any one node of a cluster: a message that is published on one node reaches all of them. When that node
 * goes down or leaves the cluster, it listens on another.
 */
class ClusterSubscriber extends OwnSubscriber {
  #isClosed = false;
  /** The number of consecutive failed connections, including the pending one. */
  #tried = 1;

  constructor(
    private readonly nodes: () => Redis[],
    private readonly options: RedisOptions,
    clients: OwnClients,
  ) {
    super(clients);
  }

  nodesChanged(): void {
    const at = this.client && hostAndPort(this.client);
    if (this.nodes().some((node) => hostAndPort(node) === at)) return;
    this.#choose(1);
  }

  replace(): void {
    this.#choose(1);
  }

  close(): void {
    this.#isClosed = true;
    this.client?.disconnect();
  }

  /** Not at the node of the present client, if there is another one. */
  protected make(): Redis | undefined {
    const at = this.client && hostAndPort(this.client);
    const all = this.nodes();
    const others = all.filter((node) => hostAndPort(node) !== at);
    const choice = others.length > 0 ? others : all;
    const node = choice[Math.floor(Math.random() * choice.length)];
    if (!node || this.#isClosed) return undefined;
    // Without retries: another node probably answers before this one is back.
    const client = node.duplicate({ ...this.options, retryStrategy: null });
    mendQuirks(client);
    let tried = this.#tried;
    client.on('ready', () => (tried = 0));
    client.on('end', () => {
      if (client !== this.client || this.#isClosed) return;
      setTimeout(() => client === this.client && this.#choose(tried + 1), this.clients.pauseBefore(tried + 1)).unref();
    });
    return this.own(client);
  }

  #choose(attempt: number): void {
    this.#tried = attempt;
    const next = this.make();
    const last = this.client;
    this.client = undefined;
    last?.disconnect();
    if (last) this.emit('close');
    if (!next) return;
    this.use(next);
    next.connect().catch(() => {}); // 'end' follows
  }
}
