import { parseArgs } from 'node:util';

export const USAGE = `npm run bench                        everything (about 32 minutes); writes the results, docs/operations/{benchmarks,benchmarks/network,capacity}.md
npm run bench -- --quick             a smoke run of everything; writes nothing that is committed
npm run bench -- --scenario <name>   only this one, or this group (may be repeated); writes results/partial.json
npm run bench -- --against <commit>  this tree beside an earlier commit, and that one beside itself (7 minutes); writes nothing
  --rounds <n>     rounds of each scenario (default 5; 1 with --quick; 15 with --against)
  --write-docs     after a part: put its results into latest.json and the pages, beside those that are there
  --docs-only      measure nothing, write the pages from latest.json and the notes
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
      'docs-only': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const { quick, help, against } = values;
  const rounds = Number(values.rounds ?? (quick ? 1 : against ? 15 : 5));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds takes a whole number, not ${values.rounds}`);
  const chosen = values.scenario.flatMap((names) => names.split(',')).flatMap((name) => groups[name] ?? [name]);
  const choice = against === undefined ? known : known.filter((name) => COMPARABLE.includes(name));
  const unknown = chosen.find((name) => !choice.includes(name));
  if (unknown !== undefined)
    throw new Error(`No scenario is called ${unknown}. There are: ${[...Object.keys(groups), ...choice].join(', ')}`);
  const isPart = chosen.length > 0;
  return {
    rounds,
    quick,
    help,
    against,
    isPart,
    scenarios: isPart ? choice.filter((name) => chosen.includes(name)) : choice,
    docsOnly: values['docs-only'],
    writeDocs: !quick && against === undefined && (!isPart || values['write-docs']),
  };
}
