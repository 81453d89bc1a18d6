import { countChurn } from '../leaks/churn.js';
import { countLeaks } from '../leaks/count-leaks.js';
import { huntMutants } from '../mutants/hunt.js';
import { huntTable } from '../mutants/hunt-table.js';
import { runCron } from '../cron/run-cron.js';
import { simulateJobs } from '../cron/jobs/simulate-jobs.js';
import { NIGHTS } from '../cron/jobs/simulated-record.js';
import { simulateCron } from '../cron/simulation/simulate-cron.js';
import { faultsOutcome } from '../report/faults-rows.js';
import { longestScriptRow, scriptsText } from '../report/longest-script-row.js';
import { topologiesOutcome } from '../report/topologies-rows.js';
import { runStorms } from '../storms/storms.js';
import { stormsOutcome } from '../storms/storms-rows.js';
import type { Part } from '../options.js';
import { atLeast, grouped, none, type Outcome } from '../report/row.js';
import type { ChapterSettings } from './chapter.js';
import { SHORT_SCRIPT_US } from '../world/longest-script.js';
import { chaptersOf, type Form, playAll, TARGETS } from './faults-part.js';
import type { Chapter } from './judge-chapter.js';
import { topologyChaptersOf, TOPOLOGY_TARGETS } from './topologies-part.js';

export interface RunSettings {
  readonly form: Form;
  readonly seed: number;
  /** Only the chapters whose title has this text. */
  readonly chapter: string;
  /** How many chapters go on at the same time. */
  readonly lanes: number;
  tell(line: string): void;
}

/** How much of each part, in each form. */
const AMOUNTS = {
  short: { ticks: 8_000, remembered: 20_000, cronSeconds: 8, leases: 2_000, waiters: 3_000 },
  long: { ticks: 100_000, remembered: 400_000, cronSeconds: 120, leases: 100_000, waiters: 72_000 },
} as const;

const STORMS = {
  short: { processes: 4, clients: 10, resources: 5, leaseMs: 1_000, holdMs: 50, cutMs: 1_500, awayMs: 500 },
  // Leases as they are by default.
  long: { processes: 8, clients: 125, resources: 20, leaseMs: 30_000, holdMs: 100, cutMs: 10_000, awayMs: 1_000 },
} as const;

/** Where not all chapters are played, the sums have nothing to reach, and not each rule has something to look at. */
const SOME = { holds: 1, contended: 0, faults: 1, each: 1, longest: false, looks: false };

function titlesOf(chapters: readonly ChapterSettings[]): string {
  return chapters.map(({ title }) => title).join('; ');
}

/** Those that were asked for, and whether these are all. */
async function playChosen(
  known: readonly ChapterSettings[],
  { chapter, lanes, tell }: RunSettings,
): Promise<{ chapters: Chapter[]; areAll: boolean }> {
  const chosen = known.filter(({ title }) => title.includes(chapter));
  if (chosen.length === 0) throw new Error(`No chapter has this in its title. They are: ${titlesOf(known)}`);
  const startedAt = performance.now();
  const chapters = await playAll(
    chosen,
    lanes,
    ({ title, holds, losses, verdicts, faults, longestScripts, clockSets, late, historyPath }) => {
      const violations = verdicts.reduce((sum, verdict) => sum + verdict.violations.length, 0);
      const count = Object.values(faults).reduce((sum, each) => sum + each, 0);
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      tell(
        `${seconds} s: ${title}: ${grouped(holds)} holds, ${count} faults, ${losses} leases lost, ${violations} violations`,
      );
      tell(`  the longest script: ${scriptsText(longestScripts)}`);
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

/** How each part is run. */
export const parts: Readonly<Record<Part, (settings: RunSettings) => Promise<Outcome>>> = {
  async faults(settings) {
    const { chapters, areAll } = await playChosen(chaptersOf(settings.form, settings.seed), settings);
    return faultsOutcome(chapters, areAll ? TARGETS[settings.form] : SOME);
  },

  async topologies(settings) {
    const { chapters, areAll } = await playChosen(topologyChaptersOf(settings.form, settings.seed), settings);
    return topologiesOutcome(chapters, areAll ? TOPOLOGY_TARGETS[settings.form] : SOME);
  },

  async storms({ form, tell }) {
    return stormsOutcome(await runStorms({ ...STORMS[form], tell }), form === 'long');
  },

  async mutants({ seed, tell }) {
    const results = await huntMutants({ seed });
    tell(huntTable(results));
    const mutants = results.filter(({ mutant }) => mutant !== null);
    const survivors = mutants.filter(({ caughtBy }) => caughtBy.length === 0);
    const suspects = results.filter(({ mutant, caughtBy }) => mutant === null && caughtBy.length > 0);
    return {
      rows: [
        atLeast('broken variants of the library', 10, mutants.length),
        none('broken variants that no checker caught', survivors.length),
      ],
      complaints: [
        ...survivors.map(({ mutant }) => `mutants, seed ${seed}: nobody caught ${mutant}`),
        ...suspects.map(({ scenario, what }) => `mutants, seed ${seed}: the library itself, ${scenario}: ${what}`),
      ],
    };
  },

  async cron({ form, seed }) {
    const { ticks, remembered, cronSeconds } = AMOUNTS[form];
    const simulated = await simulateCron({ ticks, seed });
    const nights = await simulateJobs({ seed, ...NIGHTS, ticks: remembered });
    const real = await runCron({ seconds: cronSeconds, seed });
    const told = ({ kills, pauses }: typeof simulated): string => `, ${kills} kills, ${pauses} pauses`;
    return {
      rows: [
        atLeast('simulated ticks of jobs', ticks, simulated.ticks, told(simulated)),
        atLeast('simulated ticks that are remembered, most of them missed', remembered, nights.counts['ticks']!),
        none('wrong in their history, told twice or not at all', nights.violations.length),
        atLeast('ticks of jobs in processes, on Redis', 1, real.ticks, told(real)),
        none('ticks that ran twice', simulated.duplicates + real.duplicates),
        none('ticks that no process ran, though one could', simulated.missed + real.missed),
        longestScriptRow(real.longestScripts),
      ],
      complaints: [simulated, nights, real].flatMap(({ violations }) =>
        violations.map(({ rule, what }) => `cron, seed ${seed}: ${rule}: ${what}`),
      ),
    };
  },

  async leaks({ form }) {
    const { cycles, heapGrowth, violations } = await countLeaks({ cycles: AMOUNTS[form].leases });
    const churn = await countChurn({ waiters: AMOUNTS[form].waiters });
    const growth = `heap ${(100 * heapGrowth).toFixed(1)} %`;
    return {
      rows: [
        atLeast('leases acquired and released, in every mode', AMOUNTS[form].leases, cycles),
        none('handles, listeners, subscriptions, keys left', violations.length, `, ${growth}`),
        atLeast('waiters that came and gave up behind a stuck holder', AMOUNTS[form].waiters, churn.waiters),
        {
          what: 'the longest script meanwhile, by SLOWLOG: in each of three rounds',
          target: 'a figure',
          seen: churn.longest
            .map((longest) =>
              longest ? `${longest.ms.toFixed(1)} ms (${longest.script})` : `< ${SHORT_SCRIPT_US / 1_000} ms`,
            )
            .join(', '),
          met: true,
        },
      ],
      complaints: violations.map((what) => `leaks: ${what}`),
    };
  },
};
