import { CRON_MUTANTS } from './cron-mutants.mjs';
import { LOCK_MUTANTS } from './lock-mutants.mjs';

/**
 * Every deliberately broken variant.
 *
 * @type {readonly import('./mutate.mjs').Mutant[]}
 */
export const MUTANTS = [...CRON_MUTANTS, ...LOCK_MUTANTS];
