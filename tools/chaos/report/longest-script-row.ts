import type { Chapter } from '../run/judge-chapter.js';
import { longestOf, type LongestScripts, SHORT_SCRIPT_US, type SlowScript } from '../world/longest-script.js';
import type { Row } from './row.js';

/** The longest scripts of all chapters. */
export function allScripts(chapters: readonly Chapter[]): LongestScripts {
  const all = chapters.flatMap(({ longestScripts: { byClock, atWork } }) => [byClock, atWork]);
  return longestOf(all.filter((script) => script !== undefined));
}

/**
 * A Redis that executes a script does nothing else. By the clock of Redis the time counts in which it had no processor; what it
 * certainly worked on a script is without that. What a script may do at most is tested by its commands
 * (test/redis/queue/crowds.test.ts).
 *
 * @param mostMs how long Redis may work on one. @default a figure and no rule
 */
export function longestScriptRow(longest: LongestScripts, mostMs?: number): Row {
  return {
    what: 'the longest script, by SLOWLOG; how long Redis certainly worked on one',
    target: mostMs === undefined ? 'a figure' : `at most ${mostMs} ms of work`,
    seen: scriptsText(longest),
    met: mostMs === undefined || (longest.atWork?.atWorkMs ?? 0) <= mostMs,
  };
}

export function scriptsText({ byClock, atWork }: LongestScripts): string {
  if (!byClock || !atWork) return `less than ${SHORT_SCRIPT_US / 1_000} ms`;
  return `${byClock.ms.toFixed(1)} ms (${byClock.script}); ${workText(atWork)}`;
}

function workText({ atWorkMs, script }: SlowScript): string {
  return atWorkMs === 0 ? 'not known' : `${atWorkMs.toFixed(1)} ms (${script})`;
}
