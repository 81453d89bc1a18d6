import { type EventEmitter, getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ENDS_BY_ITSELF } from '../world/leftovers.js';

/** The counts of a process and its Redis at a quiet moment, by kind. */
export type Census = Readonly<Record<string, number>>;

/** The objects to count, seen from outside. */
export interface Watched {
  /** Every ioredis client of this process. */
  readonly clients: ReadonlySet<Redis>;
  /** One that lives as long as the process, and is given to calls that wait. */
  readonly signal: AbortSignal;
  /** A plain client, to ask Redis. */
  readonly admin: Redis;
}

/** The leadership that one of the instances always has. */
export const LEADERSHIP = 'the leader';

/** Every ioredis client of this process, from now on: the package keeps its own to itself. */
export function watchClients(): Set<Redis> {
  const clients = new Set<Redis>();
  const { connect } = Redis.prototype;
  Redis.prototype.connect = function (this: Redis, ...args) {
    clients.add(this);
    return connect.apply(this, args);
  };
  return clients;
}

/** Counts repeatedly until no key is left and no count has grown, or the time is up. */
export async function takeCensus(watched: Watched, withinMs: number, before?: Census): Promise<Census> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const census = await count(watched);
    const hasGrown = before !== undefined && grownIn(census, before).length > 0;
    if ((census.keys === 0 && !hasGrown) || performance.now() > giveUpAt) return census;
    await sleep(100);
  }
}

/** The counts that have grown. */
export function grownIn(after: Census, before: Census): string[] {
  return Object.entries(after)
    .filter(([name, value]) => value > (before[name] ?? 0))
    .map(([name, value]) => `${name}: ${before[name] ?? 0} before, ${value} after`);
}

/** Bytes in use, when all that can be collected is. */
export async function heapUsed(): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < 5; round++) {
    globalThis.gc!();
    await sleep(20);
    least = Math.min(least, process.memoryUsage().heapUsed);
  }
  return least;
}

async function count({ clients, signal, admin }: Watched): Promise<Census> {
  const census: Record<string, number> = {};
  for (const resource of process.getActiveResourcesInfo()) {
    census[`handles: ${resource}`] = (census[`handles: ${resource}`] ?? 0) + 1;
  }
  census['listeners: process'] = listenersOf(process);
  census['listeners: clients'] = sum([...clients].map(listenersOf));
  census['listeners: sockets'] = sum([...clients].map(({ stream }) => (stream ? listenersOf(stream) : 0)));
  census['listeners: signal'] = getEventListeners(signal, 'abort').length;
  census['clients'] = [...clients].filter(({ status }) => status !== 'end').length;
  census['commands on their way'] = sum([...clients].map((client) => queueLength(client)));
  const [keys, channels, connections] = await Promise.all([
    admin.keys('*'),
    admin.pubsub('CHANNELS', '*') as Promise<string[]>,
    admin.client('LIST') as Promise<string>,
  ]);
  const isExpected = (key: string): boolean =>
    key === 'lock:fence' || key.startsWith(`lock:{leader:${LEADERSHIP}}`) || ENDS_BY_ITSELF.test(key);
  census['keys'] = keys.filter((key) => !isExpected(key)).length;
  census['subscriptions'] = channels.length;
  census['connections'] = connections.trim().split('\n').length;
  return census;
}

function listenersOf(emitter: EventEmitter): number {
  return sum(emitter.eventNames().map((name) => emitter.listenerCount(name)));
}

function queueLength(client: Redis): number {
  return (client as unknown as { commandQueue: { length: number } }).commandQueue.length;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
