import { setTimeout as sleep } from 'node:timers/promises';
import { exponentialBackoff, type Lease, type LockOptions } from 'nestjs-redis-lock';
import type { Bench } from './bench.js';
import { Section } from './section.js';
import { ANSWER_MS, type Way } from './settings.js';

/** The permits of each semaphore. */
const PERMITS = 3;
/** Polls so often. */
const POLLING = exponentialBackoff({ initialMs: 5, maxMs: 60 });

/** Every way to lock: what a caller does from acquiring to releasing. */
export const ways: Readonly<Record<Way, (bench: Bench) => Promise<void>>> = {
  exclusive: (bench) => lock(bench, { kind: 'stock' }),

  polled: (bench) => lock(bench, { kind: 'stock', queues: false, options: { retry: POLLING } }),

  tried: async (bench) => {
    const resource = bench.pick('stock');
    const section = new Section(bench, { resources: [resource], mode: 'exclusive', queues: false, waitMs: 0 });
    await work(bench, section, await section.acquire(() => bench.locks.tryAcquire(resource)));
  },

  /** Gives up so soon that its time is often over when the grant comes. */
  hasty: (bench) => lock(bench, { kind: 'stock', waitMs: 1 + bench.upTo(30) }),

  /** Waits long enough to notice the state of Redis, and gives up soon. */
  // With long leases, many of these waits end before the first keep of their place.
  impatient: (bench) =>
    lock(bench, { kind: 'stock', waitMs: ANSWER_MS + bench.upTo(Math.max(2_000, bench.settings.leaseMs / 3)) }),

  /** Calls of several modes give up in the same moment, or a moment later: what one knows the next one has to know. */
  mixed: async (bench) => {
    const resource = bench.pick('notes');
    const waitMs = ANSWER_MS + bench.upTo(ANSWER_MS);
    const asked = [
      { mode: 'write', waitMs },
      { mode: 'read', waitMs: waitMs + bench.upTo(200) },
      { mode: 'write', waitMs },
    ] as const;
    await Promise.all(
      asked.map(async ({ mode, waitMs }) => {
        const section = new Section(bench, { resources: [resource], mode, queues: true, waitMs });
        const lease = await section.acquire(() => bench.locks.acquire(resource, { mode, waitMs }));
        await work(bench, section, lease, mode !== 'read');
      }),
    );
  },

  aborted: async (bench) => {
    const resource = bench.pick('stock');
    const [waitMs, abortMs] = [patience(bench), bench.upTo(30)];
    const giveUp = new AbortController();
    const section = new Section(bench, { resources: [resource], mode: 'exclusive', queues: true, waitMs, abortMs });
    const lease = await section.acquire(() => {
      const timer = setTimeout(() => giveUp.abort(), abortMs);
      return bench.locks.acquire(resource, { waitMs, signal: giveUp.signal }).finally(() => clearTimeout(timer));
    });
    await work(bench, section, lease);
  },

  read: (bench) => lock(bench, { kind: 'prices', mode: 'read' }),

  write: async (bench) => {
    const resource = bench.pick('prices');
    const waitMs = patience(bench);
    const section = new Section(bench, { resources: [resource], mode: 'write', queues: true, waitMs });
    const lease = await section.acquire(() => bench.locks.acquire(resource, { mode: 'write', waitMs }));
    if (!lease) return;
    await section.hold(lease, holdMs(bench), true);
    if (bench.chance(25)) {
      await section.end('downgrade', () => lease.downgrade());
      await section.hold(lease, holdMs(bench), false);
    }
    await section.end('release', () => lease.release());
  },

  permits: async (bench) => {
    const resource = bench.pick('exports');
    const waitMs = patience(bench);
    const permits = 1 + bench.upTo(PERMITS);
    const asked = { resources: [resource], mode: 'semaphore', permits, total: PERMITS, queues: true, waitMs } as const;
    const section = new Section(bench, asked);
    const semaphore = bench.locks.semaphore(resource, { permits: PERMITS });
    await work(bench, section, await section.acquire(() => semaphore.acquire({ count: permits, waitMs })), false);
  },

  /** Gives some of its permits back, and then the others. */
  lowered: async (bench) => {
    const resource = bench.pick('seats');
    const waitMs = patience(bench);
    const permits = 1 + bench.upTo(2);
    const asked = { resources: [resource], mode: 'semaphore', permits, total: 2, queues: true, waitMs } as const;
    const section = new Section(bench, asked);
    const semaphore = bench.locks.semaphore(resource, { permits: 2 });
    const lease = await section.acquire(() => semaphore.acquire({ count: permits, waitMs }));
    if (!lease) return;
    await section.hold(lease, holdMs(bench), false);
    if (permits > 1) {
      await section.end('lower', () => lease.releasePermits(1), 1);
      await section.hold(lease, holdMs(bench), false);
    }
    await section.end('release', () => lease.release());
  },

  /** The resource stays taken for a moment after the release. */
  kept: async (bench) => {
    const resource = bench.pick('stock');
    const [waitMs, minHoldMs] = [patience(bench), 1 + bench.upTo(bench.settings.leaseMs / 20)];
    const section = new Section(bench, { resources: [resource], mode: 'exclusive', queues: true, waitMs });
    await work(bench, section, await section.acquire(() => bench.locks.acquire(resource, { waitMs, minHoldMs })));
  },

  several: async (bench) => {
    const resources = [...new Set([bench.pick('stock'), bench.pick('stock'), bench.pick('basket')])].sort();
    // Some give up so soon that a part of it may be granted, and some do not wait.
    const waitMs = [patience(bench), patience(bench), 1 + bench.upTo(30), 0][bench.upTo(4)]!;
    const section = new Section(bench, { resources, mode: 'exclusive', queues: waitMs > 0, waitMs });
    const take = waitMs > 0 ? bench.locks.acquire : bench.locks.tryAcquire;
    await work(bench, section, await section.acquire(() => take.call(bench.locks, resources, { waitMs })));
  },

  using: (bench) => reenter(bench, 'stock', 'exclusive', 0),

  reentrant: (bench) => reenter(bench, 'ledger', 'reentrant', bench.upTo(4)),
};

interface Request {
  readonly kind: string;
  readonly mode?: 'exclusive' | 'read';
  readonly queues?: boolean;
  readonly waitMs?: number;
  readonly options?: LockOptions;
}

async function lock(bench: Bench, request: Request): Promise<void> {
  const { kind, mode = 'exclusive', queues = true, waitMs = patience(bench), options } = request;
  const resource = bench.pick(kind);
  const section = new Section(bench, { resources: [resource], mode, queues, waitMs });
  const lease = await section.acquire(() => bench.locks.acquire(resource, { mode, waitMs, ...options }));
  await work(bench, section, lease, mode !== 'read');
}

async function work(bench: Bench, section: Section, lease: Lease | undefined, writes = true): Promise<void> {
  if (!lease) return;
  await section.hold(lease, holdMs(bench), writes);
  await section.end('release', () => lease.release());
}

/** Locks by `using`, so often inside of itself. */
async function reenter(bench: Bench, kind: string, mode: 'exclusive' | 'reentrant', depth: number): Promise<void> {
  const resource = bench.pick(kind);
  const enter = async (left: number, inside?: string): Promise<void> => {
    const waitMs = patience(bench);
    const asked = { resources: [resource], mode, queues: true, waitMs };
    const section = new Section(bench, inside === undefined ? asked : { ...asked, inside });
    let isGranted = false;
    section.invoked();
    await bench.locks
      .using(resource, { mode, waitMs, onLost: 'ignore' }, async (lease) => {
        isGranted = true;
        section.granted(lease);
        await section.hold(lease, holdMs(bench), inside === undefined);
        if (left > 0) await enter(left - 1, section.call);
        if (left > 0) section.look(lease);
        section.releasing();
      })
      .catch((error: unknown) => {
        if (!isGranted) section.refused(error);
        else throw error;
      });
    if (isGranted) section.released();
  };
  await enter(depth);
}

function patience(bench: Bench): number {
  const { leaseMs } = bench.settings;
  return leaseMs * 4 + bench.upTo(leaseMs * 20);
}

/** Most holds are short; some need renewals. */
function holdMs(bench: Bench): number {
  const { leaseMs, longHolds } = bench.settings;
  if (bench.chance(longHolds)) return bench.upTo(1.5 * leaseMs);
  return bench.chance(50) ? 0 : bench.upTo(4);
}

/** A caller: chooses a way and goes it, again and again. */
export async function call(bench: Bench): Promise<void> {
  const menu = Object.entries(bench.settings.ways) as [Way, number][];
  const sum = menu.reduce((total, [, parts]) => total + parts, 0);
  while (!bench.isOver) {
    let choice = bench.upTo(sum);
    const [way] = menu.find(([, parts]) => (choice -= parts) < 0)!;
    await ways[way](bench);
    await sleep(bench.upTo(3));
  }
}
