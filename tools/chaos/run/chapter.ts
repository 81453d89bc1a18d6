import { programOf } from '../../../test/support/process/program.js';
import { runTypescript } from '../../../test/support/process/run-typescript.js';
import type { Fault } from '../faults/fault.js';
import { lateGaps, type Recovery } from '../report/recoveries.js';
import type { ChaosServer } from '../world/server.js';
import { World, type WorldSettings } from '../world/world.js';
import { inject, type Plan } from './inject.js';
import type { Chapter, Judged } from './judge-chapter.js';

/** The server of one chapter, and its faults. */
export interface Stage extends AsyncDisposable {
  readonly server: ChaosServer;
  readonly faults: readonly Fault[];
  /** Rules to skip, because this server doesn't promise them. @default none */
  readonly unpromised?: readonly string[];
  /** `true` if a quorum of servers votes. */
  readonly splitsVotes?: boolean;
  readonly newClock?: WorldSettings['newClock'];
  /** Before what is left in Redis is counted. */
  readonly settle?: () => void;
}

export interface ChapterSettings extends Pick<WorldSettings, 'seed' | 'workers' | 'leaseMs' | 'work'> {
  readonly title: string;
  readonly stage: () => Promise<Stage>;
  readonly plan: Omit<Plan, 'faults'>;
  /** The folder for its history. @default it is not written */
  readonly histories?: string | undefined;
  /** The history is kept as well if one of these was late. */
  readonly recoveries: readonly Recovery[];
}

/** Judges in a process of its own, because this one is the network of the running chapters. */
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
    histories: settings.histories,
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
