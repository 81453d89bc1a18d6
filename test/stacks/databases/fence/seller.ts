// A process that sells: under a lock for each lane, in a transaction that reads and then writes. frozen-main.ts starts two.
// The frozen one brings a holder in each lane to a point between its last check and its COMMIT, and stops there (SIGSTOP).
import 'reflect-metadata';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { fence } from 'nestjs-redis-lock/fence';
import { type Database, open, type Work } from './sql-client.js';

export interface SellerOptions {
  readonly database: Database;
  readonly url: string;
  readonly redisUrl: string;
  readonly lanes: number;
  readonly isGuarded: boolean;
  /**
   * Frozen holders of the process, an equal number at each point. 0: none, and it sells until its standard input ends.
   */
  readonly rounds: number;
}

/** A frozen holder in whose lane others can work. */
export interface Passable {
  readonly lane: number;
  readonly token: number;
}

export interface SellerResult {
  /** The number of holders at each point when the process stopped. */
  readonly stoodStill: Readonly<Record<Point, number>>;
  /** The end of the sales: `committed`, or the code of an error. */
  readonly outcomes: Readonly<Record<string, number>>;
}

const LEASE_MS = 100;
const POINTS = ['checked', 'read', 'written'] as const;
type Point = (typeof POINTS)[number];
const LEVELS = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'];
/** Between two sales of a lane. */
const PAUSE_MS = 15;

const { database, url, redisUrl, lanes, isGuarded, rounds } = JSON.parse(process.argv[2]!) as SellerOptions;
const app = await NestFactory.createApplicationContext(RedisLockModule.forRoot({ connection: redisUrl }), {
  logger: false,
});
const locks = app.get(RedisLockService);
const client = open(database, url, lanes);
const outcomes: Record<string, number> = {};
const stoodStill: Record<Point, number> = { checked: 0, read: 0, written: 0 };

/** @param at what happens at each point; the frozen process stops at one of them */
async function sell(lane: number, at: (point: Point, token: number) => Promise<void> = async () => {}): Promise<void> {
  const resource = `stock:${lane}`;
  let outcome: string | undefined;
  await locks
    .using(resource, { leaseMs: LEASE_MS, waitMs: 60_000 }, async (lease) => {
      const work: Work = async (tx, query) => {
        const token = lease.fencingToken;
        lease.assertHeld();
        await at('checked', token);
        // Skips the check of the lease, because the database alone has to refuse.
        if (isGuarded) await fence.guard(tx, { resource, token });
        const [row] = await query('SELECT left_over FROM stock WHERE lane = ?', [lane]);
        await at('read', token);
        const left = Number(row!['left_over']) - 1;
        await query('UPDATE stock SET left_over = ? WHERE lane = ?', [left, lane]);
        await query('INSERT INTO sales (lane, left_over, token) VALUES (?, ?, ?)', [lane, left, token]);
        await at('written', token);
      };
      outcome = await client.transaction(LEVELS[lane % LEVELS.length]!, work).then(() => 'committed', codeOf);
    })
    .catch((error: unknown) => (outcome ??= codeOf(error))); // a lease that was lost meanwhile
  outcomes[outcome!] = (outcomes[outcome!] ?? 0) + 1;
}

/** Returns true if others can sell in its lane, because it has no lock in the database. */
function isPassable(lane: number, point: Point): boolean {
  return point === 'checked' || (point === 'read' && !isGuarded && LEVELS[lane % LEVELS.length] === 'READ COMMITTED');
}

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code ?? error);
const laneNumbers = Array.from({ length: lanes }, (_, lane) => lane);

/** Waits for all holders at their points. Then reports which can be passed, and stops the process. */
async function freeze(turn: number): Promise<void> {
  let missing = lanes;
  const passable: Passable[] = [];
  let goOn!: () => void;
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  const arrive = () => {
    if (--missing > 0) return;
    writeSync(1, `stopping ${JSON.stringify(passable)}\n`);
    process.kill(process.pid, 'SIGSTOP');
    goOn();
  };
  await Promise.all(
    laneNumbers.map(async (lane) => {
      const stopsAt = POINTS[(turn + Math.floor(lane / LEVELS.length)) % POINTS.length];
      let hasArrived = false;
      const at = async (point: Point, token: number) => {
        if (point !== stopsAt) return;
        hasArrived = true;
        stoodStill[point]++;
        if (isPassable(lane, point)) passable.push({ lane, token });
        arrive();
        await gate;
      };
      await sell(lane, at);
      if (!hasArrived) arrive(); // refused before its point
    }),
  );
}

if (rounds > 0) {
  for (let turn = 0; Math.min(...Object.values(stoodStill)) < rounds / 3; turn++) await freeze(turn);
} else {
  let isOver = false;
  process.stdin.on('end', () => (isOver = true)).resume();
  const sellAgain = async (lane: number) => {
    while (!isOver) {
      await sell(lane);
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(laneNumbers.map(sellAgain));
}
writeSync(1, `${JSON.stringify({ stoodStill, outcomes })}\n`);
await app.close();
await client.close();
