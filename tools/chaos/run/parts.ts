import { huntMutants } from '../mutants/hunt.js';
import { huntTable } from '../mutants/hunt-table.js';
import { runCron } from '../cron/run-cron.js';
import { simulateJobs } from '../cron/jobs/simulate-jobs.js';
import { NIGHTS } from '../cron/jobs/simulated-record.js';
import { faultsOutcome } from '../report/faults-rows.js';
import { topologiesOutcome } from '../report/topologies-rows.js';
import type { Part } from '../options.js';
import { atLeast, grouped, none, type Outcome } from '../report/row.js';
import type { ChapterSettings } from './chapter.js';
import { chaptersOf, type Form, playAll, TARGETS } from './faults-part.js';
import type { Chapter } from './judge-chapter.js';
import { topologyChaptersOf, TOPOLOGY_TARGETS } from './topologies-part.js';

export interface RunSettings {
  readonly form: Form;
  readonly seed: number;
  /** Only the chapters whose title has this text. */
  readonly chapter: string;
  /** Only this mutant, or the scenario of this name without any. */
  readonly mutant?: string | undefined;
  /** The folder for histories, if they are wanted. */
  readonly histories?: string | undefined;
  /** The number of concurrent chapters. */
  readonly lanes: number;
  tell(line: string): void;
}

/** The amount of each part, in each form. */
const AMOUNTS = {
  short: { ticks: 20_000, cronSeconds: 8 },
  long: { ticks: 400_000, cronSeconds: 120 },
} as const;

/** With only some chapters, the sums have no targets, and rules need no cases. */
const SOME = { holds: 1, contended: 0, faults: 1, each: 1, longest: false, looks: false };

function titlesOf(chapters: readonly ChapterSettings[]): string {
  return chapters.map(({ title }) => title).join('; ');
}

/** Runs the selected chapters. `areAll` is true if none was left out. */
async function playChosen(
  known: readonly ChapterSettings[],
  { chapter, histories, lanes, tell }: RunSettings,
): Promise<{ chapters: Chapter[]; areAll: boolean }> {
  const chosen = known.filter(({ title }) => title.includes(chapter)).map((each) => ({ ...each, histories }));
  if (chosen.length === 0) throw new Error(`No chapter has this in its title. They are: ${titlesOf(known)}`);
  const startedAt = performance.now();
  const chapters = await playAll(
    chosen,
    lanes,
    ({ title, holds, losses, verdicts, faults, clockSets, late, historyPath }) => {
      const violations = verdicts.reduce((sum, verdict) => sum + verdict.violations.length, 0);
      const count = Object.values(faults).reduce((sum, each) => sum + each, 0);
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      tell(
        `${seconds} s: ${title}: ${grouped(holds)} holds, ${count} faults, ${losses} leases lost, ${violations} violations`,
      );
      const first = verdicts.flatMap((verdict) => verdict.violations.slice(0, 3));
      for (const { rule, what } of first) tell(`  ${rule}: ${what}`);
      for (const what of late ?? []) tell(`  late: ${what}`);
      if (historyPath === undefined) return;
      for (const set of clockSets) tell(`  the clock of this machine was set by ${set}`);
      tell(`  its history is kept in ${historyPath}`);
    },
  );
  return { chapters, areAll: chosen.length === known.length };
}

/** The runner of each part. */
export const parts: Readonly<Record<Part, (settings: RunSettings) => Promise<Outcome>>> = {
  async faults(settings) {
    const { chapters, areAll } = await playChosen(chaptersOf(settings.form, settings.seed), settings);
    return faultsOutcome(chapters, areAll ? TARGETS[settings.form] : SOME);
  },

  async topologies(settings) {
    const { chapters, areAll } = await playChosen(topologyChaptersOf(settings.form, settings.seed), settings);
    return topologiesOutcome(chapters, areAll ? TOPOLOGY_TARGETS[settings.form] : SOME);
  },

  async mutants({ seed, mutant: only, histories, tell }) {
    const results = await huntMutants({ seed, only: only === undefined ? undefined : [only], histories });
    if (results.length === 0) throw new Error(`There is no mutant and no scenario ${JSON.stringify(only)}.`);
    tell(huntTable(results));
    const mutants = results.filter(({ mutant }) => mutant !== null);
    const survivors = mutants.filter(({ caughtBy }) => caughtBy.length === 0);
    const suspects = results.filter(({ mutant, caughtBy }) => mutant === null && caughtBy.length > 0);
    return {
      rows: [
        atLeast('broken variants of the library', only === undefined ? 10 : 0, mutants.length),
        none('broken variants that no checker caught', survivors.length),
      ],
      complaints: [
        ...survivors.map(({ mutant }) => `mutants, seed ${seed}: nobody caught ${mutant}`),
        ...suspects.map(({ scenario, what }) => `mutants, seed ${seed}: the library itself, ${scenario}: ${what}`),
      ],
    };
  },

  async cron({ form, seed }) {
    const { ticks, cronSeconds } = AMOUNTS[form];
    const simulated = await simulateJobs({ seed, ...NIGHTS, ticks });
    const real = await runCron({ seconds: cronSeconds, seed });
    return {
      rows: [
        atLeast(
          'simulated ticks of jobs, most of them missed',
          ticks,
          simulated.counts['ticks']!,
          `, ${simulated.counts['kills']} kills`,
        ),
        none('ran twice, or are wrong in their history, told twice or not at all', simulated.violations.length),
        atLeast('ticks of jobs in processes, on Redis', 1, real.ticks, `, ${real.kills} kills, ${real.pauses} pauses`),
        none('ticks that ran twice', real.duplicates),
        none('ticks that no process ran, though one could', real.missed),
      ],
      complaints: [simulated, real].flatMap(({ violations }) =>
        violations.map(({ rule, what }) => `cron, seed ${seed}: ${rule}: ${what}`),
      ),
    };
  },
};
