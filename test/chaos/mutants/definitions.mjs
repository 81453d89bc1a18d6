import { CRON_MUTANTS } from './cron-mutants.mjs';
import { LOCK_MUTANTS } from './lock-mutants.mjs';

/**
 * Every deliberately broken variant. A process becomes one of them by `node --import mutant-loader.mjs` with its name in
 * CHAOS_MUTANT.
 *
 * @type {readonly import('./mutate.mjs').Mutant[]}
 */
export const MUTANTS = [...CRON_MUTANTS, ...LOCK_MUTANTS];
