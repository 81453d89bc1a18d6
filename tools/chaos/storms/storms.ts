import { setTimeout as sleep } from 'node:timers/promises';
import { exclusion } from '../checkers/exclusion/exclusion.js';
import { tokens } from '../checkers/exclusion/tokens.js';
import { crashes } from '../checkers/crashes.js';
import type { Verdict } from '../checkers/violation.js';
import { ChaosRedis } from '../servers/chaos-redis.js';
import type { LongestScripts } from '../world/longest-script.js';
import { scriptsText } from '../report/longest-script-row.js';
import { StormFleet, type StormSize } from './storm-fleet.js';
import { StormWatch } from './storm-watch.js';

/** How often it is looked whether all work again. */
const LOOK_MS = 250;
/** After so long it counts as never. */
const NEVER = { leases: 4, andMs: 20_000 };
/** How many leases after that all leases of before are over. */
const OVER = 1.2;

/** One storm: what happens to the fleet, and how it came out of it. */
export interface Storm {
  readonly kind: string;
  /** From its end until every place is in Redis anew and every resource was granted again; `undefined` where that did not come. */
  readonly recoveredMs: number | undefined;
  /** How many places were in Redis when it was over for more than a lease. */
  readonly placesLater: number;
  readonly connections: { readonly all: number; readonly busiest: number };
  readonly longestScripts: LongestScripts;
  /** Of Redis, in bytes: before it, and when it was over for more than a lease. Before the first one nobody was there. */
  readonly memory: { readonly before: number; readonly after: number };
  /** Since its end. */
  readonly grants: number;
}

export interface StormsResult {
  readonly size: StormSize;
  readonly clients: number;
  readonly places: number;
  readonly storms: readonly Storm[];
  readonly verdicts: readonly Verdict[];
  /** Waits that ended without a lease: none should. */
  readonly failures: readonly string[];
  /** Keys that were left when all had been killed and their leases were over. */
  readonly left: readonly string[];
}

export interface StormsOptions extends StormSize {
  /** For how long the network of half of them is cut. */
  readonly cutMs: number;
  /** For how long Redis is away when it is restarted. */
  readonly awayMs: number;
  tell(line: string): void;
}

/** What happens to the fleet, one after another. */
interface StormFault {
  readonly kind: string;
  readonly losesData?: boolean;
  readonly inject: () => Promise<unknown>;
}

/** Starts the fleet, lets all of it happen, and judges what the clients did. */
export async function runStorms(options: StormsOptions): Promise<StormsResult> {
  const { cutMs, awayMs, leaseMs, tell } = options;
  await using redis = await ChaosRedis.start({ persistence: 'aof' });
  await using fleet = await StormFleet.load(redis, options);
  const watch = new StormWatch(redis.port);
  try {
    const restart = async (keepData: boolean): Promise<void> => {
      await redis.kill();
      await sleep(awayMs);
      await redis.restart({ keepData });
    };
    const faults: readonly StormFault[] = [
      { kind: 'all start at once', inject: () => Promise.resolve(fleet.start()) },
      { kind: 'Redis: kill -9, back with its data', inject: () => restart(true) },
      { kind: 'network: half of the processes are cut off', inject: () => fleet.cutHalf(() => sleep(cutMs)) },
      { kind: 'Redis: kill -9, back without its data', losesData: true, inject: () => restart(false) },
    ];
    const storms: Storm[] = [];
    for (const [index, fault] of faults.entries()) {
      const storm = await play(fault, index, fleet, watch, leaseMs);
      storms.push(storm);
      tell(`${storm.kind}: ${recoveryText(storm)}; the longest script: ${scriptsText(storm.longestScripts)}`);
    }
    const history = await fleet.end();
    await sleep(OVER * leaseMs);
    return {
      size: options,
      clients: fleet.clients,
      places: fleet.places,
      storms,
      verdicts: [exclusion(history), tokens(history), crashes(history)],
      failures: [...fleet.failures, ...(fleet.output ? [fleet.output] : [])],
      left: (await watch.keys()).filter((key) => !key.endsWith(':fence')),
    };
  } finally {
    watch.end();
  }
}

async function play(
  { kind, inject, losesData = false }: StormFault,
  id: number,
  fleet: StormFleet,
  watch: StormWatch,
  leaseMs: number,
): Promise<Storm> {
  const before = await watch.memory();
  const fault = { type: 'fault', id, kind, victims: fleet.names, breaksPromises: losesData, losesData } as const;
  watch.reset();
  fleet.say({ ...fault, phase: 'begin' });
  await inject();
  fleet.say({ ...fault, phase: 'healed' });
  // Redis goes by the clock of this machine.
  const [endedAt, wallEndedAt] = [performance.now(), Date.now()];
  const granted = new Map(fleet.grants);
  const isGrantedAgain = (resource: string): boolean =>
    (fleet.grants.get(resource) ?? 0) > (granted.get(resource) ?? 0);
  let recoveredMs: number | undefined;
  while (recoveredMs === undefined && performance.now() - endedAt < NEVER.leases * leaseMs + NEVER.andMs) {
    await sleep(LOOK_MS);
    // A place that was kept since lasts until a lease after that.
    const kept = await watch.countPlaces(fleet.resources, wallEndedAt + leaseMs);
    if (isFull(kept, fleet) && fleet.resources.every(isGrantedAgain)) recoveredMs = performance.now() - endedAt;
  }
  await sleep(OVER * leaseMs);
  let placesLater = await watch.countPlaces(fleet.resources, Date.now());
  // Places lapse where the machine stands still for a moment, and are taken again.
  for (const from = performance.now(); !isFull(placesLater, fleet) && performance.now() - from < leaseMs;) {
    await sleep(LOOK_MS);
    placesLater = await watch.countPlaces(fleet.resources, Date.now());
  }
  const { connections, longestScripts } = watch;
  const grants = sum(fleet.grants) - sum(granted);
  return {
    kind,
    recoveredMs,
    placesLater,
    connections,
    longestScripts,
    memory: { before, after: await watch.memory() },
    grants,
  };
}

export function recoveryText({ recoveredMs, grants }: Storm): string {
  if (recoveredMs === undefined) return 'not all of them work again';
  return `${(recoveredMs / 1_000).toFixed(1)} s, ${grants} grants since`;
}

/** Of each resource, one client may have released it and not have asked again yet. */
export function isFull(
  places: number,
  fleet: { readonly places: number; readonly resources: { readonly length: number } },
): boolean {
  return places >= fleet.places - fleet.resources.length;
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}
