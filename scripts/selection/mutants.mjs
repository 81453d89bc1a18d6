// The deliberately broken variants of the library and of the model: which of them a change is like.
import { CRON_MUTANTS } from '../../tools/chaos/mutants/cron-mutants.mjs';
import { LOCK_MUTANTS } from '../../tools/chaos/mutants/lock-mutants.mjs';
import { SCRIPTS } from '../../tools/chaos/mutants/mutate.mjs';
import { mutants as MODEL_MUTANTS } from '../../tools/model/configurations.mjs';

/** Where the scripts are written. */
const LUA = 'lib/redis/lua/acquire.lua';

const inChaos = (suite, mutants) =>
  mutants.map(({ name, file }) => ({
    name,
    suite,
    file: file === SCRIPTS ? LUA : `lib/${file.replace(/\.js$/, '.ts')}`,
  }));

/**
 * Each mutant, the suite that tries it, and a file of lib/ to which a change like it would be made. The suite tries it for each change
 * to the room of that file.
 *
 * @type {readonly { readonly name: string, readonly suite: string, readonly file: string }[]}
 */
export const MUTANTS = [
  ...inChaos('chaos mutants', LOCK_MUTANTS),
  ...inChaos('chaos cron', CRON_MUTANTS),
  ...MODEL_MUTANTS.map(({ name, rule }) => ({ name, suite: 'model', file: rule })),
];
