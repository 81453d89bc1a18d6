import type { Redis } from 'ioredis';
import { within } from '../../../kernel/util/promises.js';
import { FSYNC_SETTINGS, infoFields, pairsOf } from '../../../redis/script/pairs.js';

/** How many round trips are measured. */
const ROUND_TRIPS = 21;
const ANSWER_MS = 5_000;

/** What a server says of itself. Nothing is asked that changes it, and what it refuses to tell is left out. */
export interface ServerFacts {
  /** The fields of INFO; empty where the user may not ask. */
  readonly info: ReadonlyMap<string, string>;
  /** `redis` or `valkey`, and the version, by HELLO, which every user may ask. */
  readonly name: string | undefined;
  readonly version: string | undefined;
  /** The name of the Redis user. */
  readonly user: string | undefined;
  /** The option `save`, which INFO does not tell. */
  readonly save: string | undefined;
  /** How it writes its append-only file, which INFO does not tell; empty if the user may not ask. */
  readonly fsync: ReadonlyMap<string, string>;
  readonly clock: ClockFacts | undefined;
}

interface ClockFacts {
  /** Milliseconds by which the server's clock is ahead of this machine's. */
  readonly aheadMs: number;
  /** By how much that may be wrong. */
  readonly uncertaintyMs: number;
  readonly roundTrips: { readonly medianMs: number; readonly slowestMs: number };
}

/** Asks a server. Resolves when all is answered or refused. */
export async function readFacts(client: Redis): Promise<ServerFacts> {
  const [info, hello, user, save, fsync] = await Promise.all([
    orNothing(client.info()),
    orNothing(client.call('HELLO')),
    orNothing(client.call('ACL', 'WHOAMI')),
    orNothing(client.call('CONFIG', 'GET', 'save')),
    orNothing(client.call('CONFIG', 'GET', FSYNC_SETTINGS)),
  ]);
  const fields = infoFields(info ?? '');
  const greeting = pairsOf(hello);
  const isValkey = fields.get('server_name') === 'valkey' || greeting.get('server') === 'valkey';
  return {
    info: fields,
    name: info === undefined && hello === undefined ? undefined : isValkey ? 'Valkey' : 'Redis',
    version: fields.get('valkey_version') ?? fields.get('redis_version') ?? greeting.get('version'),
    user: typeof user === 'string' ? user : undefined,
    save: pairsOf(save).get('save'),
    fsync: pairsOf(fsync),
    clock: await orNothing(readClock(client)),
  };
}

/** `undefined` where Redis refuses to tell it, or does not answer. */
function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  const orUndefined = answer.catch(() => undefined);
  return within(ANSWER_MS, orUndefined);
}

/** The clock is read off the quickest round trip, because it is known best there. */
async function readClock(client: Redis): Promise<ClockFacts> {
  const trips: { readonly ms: number; readonly aheadMs: number }[] = [];
  for (let count = 0; count < ROUND_TRIPS; count++) {
    const sentAt = performance.now();
    const [seconds, micros] = await client.time();
    const ms = performance.now() - sentAt;
    const aheadMs = Number(seconds) * 1_000 + Number(micros) / 1_000 - (Date.now() - ms / 2);
    trips.push({ ms, aheadMs });
  }
  trips.sort((a, b) => a.ms - b.ms);
  const [quickest] = trips as [(typeof trips)[number]];
  return {
    aheadMs: quickest.aheadMs,
    // Date.now() is rounded down.
    uncertaintyMs: quickest.ms / 2 + 1,
    roundTrips: { medianMs: trips[ROUND_TRIPS >> 1]!.ms, slowestMs: trips.at(-1)!.ms },
  };
}
