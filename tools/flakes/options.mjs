// What `npm run flakes` takes.
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

export const USAGE = `npm run flakes -- [options] -- <arguments for Jest>

Runs the tests that the arguments select again and again, and says which of them fail, and in how many rounds.

  --rounds <number>   how often (default: 50)
  --busy <number>     processes that keep a core busy meanwhile (default: 2)
  --workers <number>  test files at once (default: 2)
  --stops             stops all processes of the tests together for 50 to 1,000 ms, again and again
  --seed <number>     the CHAOS_SEED of the first round; each further round has one more (default: by chance, and printed)
  --until <number>    ends after this many rounds with a failure (default: never)`;

/**
 * @param {string[]} args
 * @throws Error that says which argument is wrong, and what is allowed
 */
export function readOptions(args) {
  const split = args.indexOf('--');
  const [own, jest] = split < 0 ? [args, []] : [args.slice(0, split), args.slice(split + 1)];
  const { values } = parseArgs({
    args: own,
    options: {
      help: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '50' },
      busy: { type: 'string', default: '2' },
      workers: { type: 'string', default: '2' },
      stops: { type: 'boolean', default: false },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      until: { type: 'string', default: 'never' },
    },
  });
  if (!values.help && jest.length === 0) throw new Error('Name the tests behind --, for example: -- test/redis/queue');
  return {
    help: values.help,
    rounds: integer('--rounds', values.rounds, 1),
    busy: integer('--busy', values.busy, 0),
    workers: integer('--workers', values.workers, 1),
    stops: values.stops,
    seed: integer('--seed', values.seed, 0),
    until: values.until === 'never' ? Infinity : integer('--until', values.until, 1),
    jest,
  };
}

function integer(option, text, least) {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
    throw new Error(`${option} must be an integer of ${least} or more, not ${JSON.stringify(text)}`);
  return value;
}
