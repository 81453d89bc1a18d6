import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { ResourceNames } from '../../../lib/kernel/api/resource.js';
import { machineNow } from './machine-now.js';
import { SeededRandom } from '../world/seeded-random.js';

/** Options to take a resource: as a semaphore if the number of permits is set, otherwise as a lock. */
export interface TakeOptions extends LockOptions {
  permits?: number;
  count?: number;
}

/** One run of work under a lock of any mode. Its times are the machine's monotonic clock, the same in all processes. */
export interface MixedSection {
  resources: readonly string[];
  mode: Lease['mode'];
  /** Its permits of a semaphore; 1 in other modes. */
  count: number;
  tokens: readonly number[];
  from: number;
  to: number;
}

/** One of the ways to take one of the resources. */
export interface Way {
  resources: string | string[];
  options?: TakeOptions;
}

export interface MixedWork {
  callers: number;
  /** The number of runs of each caller, or the time after its first lease. */
  times?: number;
  forMs?: number;
  /** Each caller chooses one of them each time, and any order of its resources. */
  ways: readonly Way[];
  seed: number;
}

export function take(locks: LockClient, resources: ResourceNames, options: TakeOptions = {}): Promise<Lease> {
  const { permits, count, ...lock } = options;
  if (permits === undefined) return locks.acquire(resources, lock);
  const { mode: _mode, ...permitOptions } = lock;
  return locks.semaphore(resources as string, { permits }).acquire({ ...permitOptions, ...(count && { count }) });
}

/** Works under locks that are chosen at random, for a random time of at most a few milliseconds. */
export async function workMixed(locks: LockClient, work: MixedWork): Promise<MixedSection[]> {
  const { callers, times = Infinity, forMs = Infinity, ways, seed } = work;
  const sections: MixedSection[] = [];
  const call = async (random: SeededRandom): Promise<void> => {
    let startedAt = Infinity;
    for (let i = 0; i < times && machineNow() < startedAt + forMs; i++) {
      const { resources, options } = ways[Math.floor(random.fraction() * ways.length)]!;
      const names = typeof resources === 'string' ? resources : shuffled(resources, random);
      const lease = await take(locks, names, { waitMs: 60_000, ...options });
      const from = machineNow();
      startedAt = Math.min(startedAt, from);
      await nap(random);
      // A lost lease is no longer a section: another one may have begun.
      if (lease.isHeld()) sections.push(sectionOf(lease, from, options));
      // Without a confirmation by Redis, it is sent again in the background.
      await lease[Symbol.asyncDispose]();
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, i) => call(new SeededRandom(seed * 1_000 + i))));
  return sections;
}

export function sectionOf(lease: Lease, from: number, options: TakeOptions = {}): MixedSection {
  const { resources, mode } = lease;
  const tokens = resources.map((resource) => lease.fencingTokenOf(resource));
  return { resources, mode, count: options.count ?? 1, tokens, from, to: machineNow() };
}

/** Conflicts between sections of one resource; none if all is correct. */
export function conflicts(sections: readonly MixedSection[], resource: string, permits = 1): string[] {
  const own = sections
    .filter(({ resources }) => resources.includes(resource))
    .map((section) => ({ ...section, token: section.tokens[section.resources.indexOf(resource)]! }))
    .sort((a, b) => a.from - b.from);
  const found: string[] = [];
  let running: typeof own = [];
  let largest = 0;
  let largestOfWriters = 0;
  for (const section of own) {
    running = running.filter(({ to }) => to > section.from);
    const isWriter = section.mode !== 'read' && section.mode !== 'semaphore';
    const isExcluded = running.some(({ mode }) => isWriter || mode !== section.mode);
    running.push(section);
    if (isExcluded) found.push(running.map(({ mode }) => mode).join(' beside '));
    if (section.mode === 'semaphore') {
      const used = running.reduce((sum, { count }) => sum + count, 0);
      if (used > permits) found.push(`${used} of ${permits} permits`);
    }
    // A writer's token exceeds all earlier ones, and all later tokens exceed the writer's.
    if (section.token <= (isWriter ? largest : largestOfWriters)) found.push(`${section.mode}: token ${section.token}`);
    largest = Math.max(largest, section.token);
    if (isWriter) largestOfWriters = Math.max(largestOfWriters, section.token);
  }
  const tokens = own.map(({ token }) => token);
  if (new Set(tokens).size < tokens.length) found.push('a token was given twice');
  return found;
}

/** The maximum number of concurrent sections of a resource. */
export function mostAtOnce(sections: readonly MixedSection[], resource: string, mode: MixedSection['mode']): number {
  const own = sections.filter((section) => section.mode === mode && section.resources.includes(resource));
  const running = own.map(({ from }) => own.filter((other) => other.from <= from && other.to > from).length);
  return Math.max(0, ...running);
}

async function nap(random: SeededRandom): Promise<void> {
  const kind = random.fraction();
  if (kind < 0.4) return;
  if (kind < 0.8) return new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setTimeout(resolve, random.fraction() * 4));
}

function shuffled<T>(values: readonly T[], random: SeededRandom): T[] {
  const places = values.map((value) => ({ value, place: random.fraction() }));
  return places.sort((a, b) => a.place - b.place).map(({ value }) => value);
}
