import { parseArgs } from 'node:util';

export const USAGE = `npm run bench                        everything (about 45 minutes)
npm run bench -- --quick             a smoke run of everything
npm run bench -- --scenario <name>   only this one, or this group (may be repeated)
npm run bench -- --against <commit>  this tree beside an earlier commit, that one beside itself, and this tree beside the
                                     fixed base of tools/bench/fastest-commit.mjs (20 minutes)
npm run bench -- --against fixed     this tree beside the fixed base alone (15 minutes)
npm run bench -- --write-docs        what docs/operations/benchmarks.md shows, and writes it there
  --rounds <n>     rounds of each scenario (default 5; 1 with --quick; 15 with --against)
`;

/** The scenarios in which two builds can take turns. */
const COMPARABLE = ['uncontended-1', 'uncontended-64', 'contended-empty', 'contended-2ms'];

/**
 * @param {string[]} args
 * @param {readonly string[]} known the scenarios
 * @param {Record<string, readonly string[]>} [groups] scenarios that can be chosen by one name
 */
export function readOptions(args, known, groups = {}) {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string' },
      against: { type: 'string' },
      scenario: { type: 'string', multiple: true, default: [] },
      quick: { type: 'boolean', default: false },
      'write-docs': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const { quick, help, against, 'write-docs': writeDocs } = values;
  const rounds = Number(values.rounds ?? (quick ? 1 : against ? 15 : 5));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds takes a whole number, not ${values.rounds}`);
  if (writeDocs && (quick || against !== undefined || values.scenario.length > 0))
    throw new Error('--write-docs chooses the scenarios itself, and takes only --rounds');
  const wanted = writeDocs ? ['page'] : values.scenario.flatMap((names) => names.split(','));
  const chosen = wanted.flatMap((name) => groups[name] ?? [name]);
  const choice = against === undefined ? known : known.filter((name) => COMPARABLE.includes(name));
  const unknown = chosen.find((name) => !choice.includes(name));
  if (unknown !== undefined)
    throw new Error(`No scenario is called ${unknown}. There are: ${[...Object.keys(groups), ...choice].join(', ')}`);
  const scenarios = chosen.length > 0 ? choice.filter((name) => chosen.includes(name)) : choice;
  return { rounds, quick, help, against, scenarios, writeDocs };
}
