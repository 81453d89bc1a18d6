import { setTimeout as sleep } from 'node:timers/promises';
import { checkers } from '../checkers/index.js';
import type { Verdict } from '../checkers/violation.js';
import { exportHistory } from '../history/export.js';
import { History } from '../history/history.js';
import { ChaosRedis } from '../servers/chaos-redis.js';
import { standalone } from '../world/standalone.js';
import { prepareWorkers } from '../world/worker-process.js';
import { World } from '../world/world.js';
import { LOCK_MUTANTS, type LockMutant } from './lock-mutants.mjs';
import { replacedBy } from './replaced-by.js';
import { isPlayable, scenarios } from './scenarios.js';

/** The result of one mutant, or of a world without any. */
export interface HuntResult {
  /** Its name; `null` where the library was the published one. */
  readonly mutant: string | null;
  readonly scenario: LockMutant['scenario'];
  readonly seed: number;
  /** The broken rules. For a mutant: those that must catch it, as soon as one has. */
  readonly caughtBy: readonly string[];
  /** The first violation. */
  readonly what: string | undefined;
  /** Time for which its workers had worked by then. */
  readonly afterMs: number;
  readonly holds: number;
  /** The file with its history, if histories are wanted. */
  readonly historyPath?: string | undefined;
}

export interface HuntOptions {
  readonly seed: number;
  /** Names of mutants, and of scenarios to play with the published library. @default all of them */
  readonly only?: readonly string[] | undefined;
  /** The folder for the histories. @default they are not written */
  readonly histories?: string | undefined;
}

/** A mutant, or the library itself, in a scenario. */
interface Quarry {
  readonly mutant?: LockMutant;
  readonly scenario: LockMutant['scenario'];
}

/** The history of a world, and its violations. */
interface Finding {
  readonly history: History;
  readonly broken: readonly Verdict[];
  readonly at: number;
}

/**
 * One world works or waits while another one starts. With more, this process, which is their network, stalls too often.
 */
const AT_ONCE = 3;
const LOOK_MS = 200;

/**
 * Lets each mutant work in a small world until a checker that is there for it finds what it does wrong, and the published library
 * in each of these worlds, in which no checker may find anything.
 */
export async function huntMutants({ seed, only, histories }: HuntOptions): Promise<HuntResult[]> {
  const all: Quarry[] = [
    ...LOCK_MUTANTS.map((mutant) => ({ mutant, scenario: mutant.scenario })),
    ...(Object.keys(scenarios) as LockMutant['scenario'][]).map((scenario) => ({ scenario })),
  ];
  const left = all.filter(({ mutant, scenario }) => {
    return isPlayable(scenario) && (!only || only.includes(mutant?.name ?? scenario));
  });
  // Starts the longest first, so that none runs alone at the end.
  left.sort((a, b) => scenarios[b.scenario].enoughMs - scenarios[a.scenario].enoughMs);
  prepareWorkers(left.map(({ mutant }) => mutant && replacedBy(mutant)));
  const results: HuntResult[] = [];
  const hunters = Array.from({ length: AT_ONCE }, async () => {
    for (let quarry = left.shift(); quarry; quarry = left.shift()) results.push(await hunt(quarry, seed, histories));
  });
  await Promise.all(hunters);
  return results;
}

async function hunt({ mutant, scenario }: Quarry, seed: number, histories?: string): Promise<HuntResult> {
  const { settings, redis: server = { persistence: 'none' }, options } = scenarios[scenario];
  await using redis = await ChaosRedis.start(server);
  const replaced = mutant && replacedBy(mutant);
  const work = { ...settings.work, ...mutant?.work };
  await using world = await World.start(standalone(redis, options), {
    ...settings,
    work,
    seed,
    ...(replaced && { replaced }),
  });
  const startedAt = performance.now();
  const { history, broken, at } = mutant
    ? await untilCaught(world, redis, mutant)
    : await untilEnd(world, redis, scenario);
  return {
    mutant: mutant?.name ?? null,
    scenario,
    seed,
    caughtBy: broken.map(({ rule }) => rule),
    what: broken[0]?.violations[0]?.what,
    afterMs: Math.round(at - startedAt),
    holds: history.holds.length,
    ...(histories !== undefined && {
      historyPath: exportHistory(history, histories, mutant?.name ?? `none-${scenario}`),
    }),
  };
}

/** Nothing may be wrong: there is nothing to look for before the end. */
async function untilEnd(world: World, redis: ChaosRedis, scenario: LockMutant['scenario']): Promise<Finding> {
  const { enoughMs } = scenarios[scenario];
  const trouble = beginTrouble(world, redis, scenario);
  await (enoughMs > 0 ? sleep(enoughMs) : trouble.ended);
  await trouble.end();
  await world.close();
  return look(world.heardSoFar(), [...checkers.keys()]);
}

/** Looks for violations all the time, also while its application closes. */
async function untilCaught(world: World, redis: ChaosRedis, mutant: LockMutant): Promise<Finding> {
  const { scenario, caughtBy, lastsMs = scenarios[scenario].lastsMs } = mutant;
  const trouble = beginTrouble(world, redis, scenario);
  const caught = new AbortController();
  const end = lastsMs > 0 ? sleep(lastsMs, undefined, caught) : trouble.ended;
  const finding = await lookUntil(end, world, caughtBy);
  // Otherwise its caller could not end before the time is up.
  caught.abort();
  await trouble.end();
  return finding.broken.length > 0 ? finding : lookUntil(world.close(), world, caughtBy);
}

interface Running {
  readonly ended: Promise<void>;
  end(): Promise<void>;
}

function beginTrouble(world: World, redis: ChaosRedis, scenario: LockMutant['scenario']): Running {
  const over = new AbortController();
  const ended = scenarios[scenario].trouble?.(world, over.signal, redis) ?? Promise.resolve();
  // Avoids an unhandled rejection: the error reaches the caller that awaits the end.
  ended.catch(() => undefined);
  return {
    ended,
    end(): Promise<void> {
      over.abort();
      return ended;
    },
  };
}

/** Checks a running world until a rule is broken or the end has come. */
async function lookUntil(end: Promise<unknown>, world: World, rules: readonly string[]): Promise<Finding> {
  let isOver = false;
  const ended = end.then(() => (isOver = true));
  // Avoids an unhandled rejection if the caller has stopped waiting.
  ended.catch(() => undefined);
  for (;;) {
    await Promise.race([sleep(LOOK_MS), ended]);
    const history = world.heardSoFar();
    // Processes that are still closing have not cleaned up yet.
    const finding = look(history, isClosed(history) ? rules : rules.filter((rule) => rule !== 'leftovers'));
    if (finding.broken.length > 0 || isOver) return finding;
  }
}

/** Returns true if all processes that began to close have closed. */
function isClosed(history: History): boolean {
  return history.of('closing').length === history.of('closed').length;
}

function look(history: History, rules: readonly string[]): Finding {
  const verdicts = rules.map((rule) => checkers.get(rule)!(history));
  return { history, broken: verdicts.filter(({ violations }) => violations.length > 0), at: performance.now() };
}
