import { programOf } from '../../../test/support/process/program.js';
import { runTypescript } from '../../../test/support/process/run-typescript.js';
import type { Fault } from '../faults/fault.js';
import { lateGaps, type Recovery } from '../report/recoveries.js';
import type { ChaosServer } from '../world/server.js';
import { World, type WorldSettings } from '../world/world.js';
import { inject, type Plan } from './inject.js';
import type { Chapter, Judged } from './judge-chapter.js';

/** What a server is made of for one chapter, and what may go wrong with it. */
export interface Stage extends AsyncDisposable {
  readonly server: ChaosServer;
  readonly faults: readonly Fault[];
  /** Rules that nobody looks at, because what they say is not promised here. @default none */
  readonly unpromised?: readonly string[];
  /** What else is promised here than on one Redis. */
  readonly splitsVotes?: boolean;
  readonly newClock?: WorldSettings['newClock'];
  /** Before what is left in Redis is counted. */
  readonly settle?: () => void;
}

export interface ChapterSettings extends Pick<WorldSettings, 'seed' | 'workers' | 'leaseMs' | 'work'> {
  readonly title: string;
  readonly stage: () => Promise<Stage>;
  readonly plan: Omit<Plan, 'faults'>;
  /** The history is kept, too, where one of these was late. */
  readonly recoveries: readonly Recovery[];
}

/** Judges in a process of its own: the process that plays is the network of the chapters that still go on. */
const JUDGE = new URL('judge-process-main.ts', import.meta.url);
programOf(JUDGE); // now: to make it takes a while, in which no network would go on

/** Plays one world from its beginning to its end, and checks what it said. */
export async function play(settings: ChapterSettings): Promise<Chapter> {
  const { title, seed, workers, leaseMs, work, plan } = settings;
  await using stage = await settings.stage();
  const { newClock, faults, unpromised = [], splitsVotes = false } = stage;
  const options = { seed, workers, leaseMs, work, ...(newClock && { newClock }) };
  await using world = await World.start(stage.server, options);
  await inject(world, { ...plan, faults });
  await world.close(stage.settle);
  // Waited for here: the history is gone with the world, unless there is something to find in it.
  const chapter = await judge(world.historyPath, {
    title,
    seed,
    leaseMs,
    unpromised,
    splitsVotes,
    kinds: faults.map(({ kind }) => kind),
  });
  const late = lateGaps(settings.recoveries, chapter.gaps);
  if (late.length === 0 && chapter.verdicts.every(({ violations }) => violations.length === 0)) return chapter;
  world.keepHistory();
  return { ...chapter, late, historyPath: world.historyPath };
}

async function judge(historyPath: string, judged: Judged): Promise<Chapter> {
  const { code, stdout, stderr } = await runTypescript(JUDGE, [historyPath, JSON.stringify(judged)]);
  if (code !== 0) throw new Error(`${judged.title} could not be judged (${code}):\n${stderr}`);
  return JSON.parse(stdout) as Chapter;
}
