import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { InvalidLockOptionsError, type Lease, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { Deferred } from '../../../lib/core/util/promises.js';
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { ENDS_BY_ITSELF } from '../world/leftovers.js';
import {
  canBeTaken,
  HOSTILE_NAMES,
  keyPrefix,
  outerKeyPrefix,
  relatedNames,
} from '../../../test/support/names/hostile-names.js';

/** What came of names that were held at the same time, on a Redis. */
export interface SharedFuzz {
  names: number;
  rounds: number;
  violations: string[];
}

/** How a name is held. */
type Way = 'exclusive' | 'reentrant' | 'read' | 'write' | 'semaphore' | 'several' | 'singleton';
const WAYS: readonly Way[] = ['exclusive', 'reentrant', 'read', 'write', 'semaphore', 'several', 'singleton'];

const NAMES_PER_ROUND = 260;
/** Each gives some six or seven names. */
const RELATED_PER_ROUND = 40;
const GONE_WITHIN_MS = 15_000;

/** Holds so many hostile names at once, each in one of all modes, in rounds with key prefixes that are hostile as well. */
export async function fuzzSharedNames(names: number, seed: number): Promise<SharedFuzz> {
  const result: SharedFuzz = { names: 0, rounds: 0, violations: [] };
  await using server = await startRedisServer();
  const round = fc.record({
    prefix: keyPrefix,
    outer: outerKeyPrefix,
    names: fc
      .array(relatedNames, { minLength: RELATED_PER_ROUND, maxLength: RELATED_PER_ROUND, size: 'max' })
      .map((related) => [...new Set(related.flat())]),
  });
  // Not a property: what went wrong in Redis cannot be shrunk, and a round says by itself what it was about.
  for (const { prefix, outer, names: drawn } of fc.sample(round, {
    seed,
    numRuns: Math.ceil(names / NAMES_PER_ROUND),
  })) {
    result.rounds++;
    const names = result.rounds === 1 ? [...new Set([...HOSTILE_NAMES, ...drawn])] : drawn;
    const world = new SharedWorld(server.url, outer, prefix, names);
    await world.run(seed + result.rounds).catch((error: unknown) => world.violations.push(String(error)));
    result.names += world.names.length;
    const where = `round ${result.rounds} of seed ${seed}, prefixes ${JSON.stringify([outer, prefix])}: `;
    result.violations.push(...world.violations.map((violation) => where + violation));
  }
  return result;
}

/** Two applications and the names they share. */
class SharedWorld {
  readonly violations: string[] = [];
  readonly names: readonly string[];
  readonly #refused: readonly string[];
  readonly #apps: INestApplicationContext[] = [];

  constructor(
    private readonly url: string,
    private readonly outer: string,
    private readonly prefix: string,
    drawn: readonly string[],
  ) {
    this.names = drawn.filter(canBeTaken);
    this.#refused = drawn.filter((name) => !canBeTaken(name));
  }

  async run(seed: number): Promise<void> {
    const admin = new Redis(this.url);
    try {
      await admin.flushall();
      const [a, b] = [await this.#start(), await this.#start()];
      await this.#refuse(a, admin);
      const held = await Promise.all(
        this.names.map((name, index) => this.#take(a, name, WAYS[(seed + index) % WAYS.length]!)),
      );
      await this.#look(a, b, held);
      await this.#handOver(b, held);
      await this.#expectGone(admin);
    } finally {
      await Promise.all(this.#apps.map((app) => app.close()));
      admin.disconnect();
    }
  }

  async #start(): Promise<RedisLockService> {
    const { hostname: host, port } = new URL(this.url);
    const connection = { host, port: Number(port), keyPrefix: this.outer };
    const module = RedisLockModule.forRoot({
      connection,
      keyPrefix: this.prefix,
      unclearNames: 'allow',
      attemptTimeoutMs: 10_000,
      shutdown: { drainMs: 0 },
    });
    const app = await NestFactory.createApplicationContext(module, { logger: false });
    this.#apps.push(app);
    return app.get(RedisLockService);
  }

  /** What cannot be a name never gets to Redis. */
  async #refuse(locks: RedisLockService, admin: Redis): Promise<void> {
    for (const name of this.#refused) {
      const error = await locks.acquire(name).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (!(error instanceof InvalidLockOptionsError))
        this.#violation(`${print(name)} was not refused: ${String(error)}`);
    }
    if ((await admin.dbsize()) !== 0) this.#violation('a name that was refused has left a key');
  }

  async #take(locks: RedisLockService, name: string, way: Way): Promise<Held> {
    if (way === 'singleton' && Buffer.byteLength(name) <= 500) return this.#run(locks, name);
    const lease = await takeBy(locks, name, way);
    if (!lease) this.#violation(`${print(name)} (${way}) was held by another name`);
    return { name, way, lease, giveBack: async () => lease?.release() };
  }

  /** The lock of the job is `cron:` and its name; a name that reads so may be among the others, so it is one of its own. */
  async #run(locks: RedisLockService, name: string): Promise<Held> {
    const job = `${name}!`;
    const work = new Deferred<void>();
    const started = new Deferred<Lease | undefined>();
    const options = { job, tick: name, overlap: 'skip', onCrash: 'skip', keepMs: 1_000, lock: {} } as const;
    const run = locks.runSingleton(options, async (lease) => {
      started.resolve(lease);
      await work.promise;
    });
    run.then(() => started.resolve(undefined), started.reject);
    const lease = await started.promise;
    if (!lease) this.#violation(`the job ${print(job)} was taken for another one`);
    const giveBack = (): Promise<void> => {
      work.resolve();
      return run;
    };
    return { name: `cron:${job}`, way: 'singleton', lease, giveBack };
  }

  /** Each name has its own holder, and the list has just these names. */
  async #look(a: RedisLockService, b: RedisLockService, held: readonly Held[]): Promise<void> {
    const expected = new Map(held.filter(({ lease }) => lease).map(({ name, lease }) => [name, lease!]));
    for (const name of this.names)
      if (!expected.has(name) && (await b.inspect(name)).mode !== null) this.#violation(`${print(name)} is held`);
    for (const [name, lease] of expected) {
      const { holders, mode } = await b.inspect(name);
      const tokens = holders.map(({ fencingToken }) => fencingToken);
      const token = lease.fencingTokenOf(name);
      if (tokens.length !== 1 || tokens[0] !== token || mode !== lease.mode) {
        this.#violation(`${print(name)} (${lease.mode} ${token}) is seen as ${mode} ${tokens.join()}`);
      }
    }
    const some = this.names.filter((_, index) => index % 40 === 0);
    for (const prefix of ['', ...some.map((name) => name.slice(0, 3)).filter((name) => name.isWellFormed())]) {
      const listed = (await a.list({ prefix, limit: 10_000 })).map(({ resource }) => resource).sort();
      const wanted = [...expected.keys()].filter((name) => name.startsWith(prefix)).sort();
      if (JSON.stringify(listed) !== JSON.stringify(wanted)) {
        this.#violation(`list(${print(prefix)}) gives ${print(listed)}, not ${print(wanted)}`);
      }
    }
  }

  /** Whoever waits for a name gets it when that name is released. */
  async #handOver(next: RedisLockService, held: readonly Held[]): Promise<void> {
    // Nobody but another run may wait for a run.
    const locked = held.filter(({ lease, way }) => lease && way !== 'singleton');
    const waiting = locked.map(({ name, way }) => takeNext(next, name, way));
    for (const { giveBack } of held) await giveBack();
    for (const [index, lease] of (await Promise.all(waiting)).entries()) {
      const { name } = locked[index]!;
      if (lease.resource !== name) this.#violation(`${print(name)} was granted as ${print(lease.resource)}`);
      await lease.release();
    }
  }

  async #expectGone(admin: Redis): Promise<void> {
    const fence = `${this.outer}${this.prefix}:fence`;
    const giveUpAt = performance.now() + GONE_WITHIN_MS;
    for (;;) {
      const left = (await admin.keys('*')).filter((key) => key !== fence && !ENDS_BY_ITSELF.test(key));
      if (left.length === 0) return;
      if (performance.now() > giveUpAt) return this.#violation(`left in Redis: ${print(left)}`);
      await sleep(50);
    }
  }

  #violation(what: string): void {
    this.violations.push(what);
  }
}

interface Held {
  readonly name: string;
  readonly way: Way;
  readonly lease?: Lease | null | undefined;
  giveBack(): Promise<unknown>;
}

function takeBy(locks: RedisLockService, name: string, way: Way): Promise<Lease | null> {
  if (way === 'semaphore') return locks.semaphore(name, { permits: 3 }).tryAcquire({ count: 3 });
  return locks.tryAcquire(way === 'several' ? [name] : name, { mode: modeOf(way) });
}

/** In a mode that the holder excludes. */
function takeNext(locks: RedisLockService, name: string, way: Way): Promise<Lease> {
  const waitMs = 60_000;
  if (way === 'semaphore') return locks.semaphore(name, { permits: 3 }).acquire({ waitMs });
  return locks.acquire(name, { mode: way === 'write' ? 'read' : 'write', waitMs });
}

function modeOf(way: Way): 'exclusive' | 'reentrant' | 'read' | 'write' {
  return way === 'reentrant' || way === 'read' || way === 'write' ? way : 'exclusive';
}

function print(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 297)}...` : text;
}
