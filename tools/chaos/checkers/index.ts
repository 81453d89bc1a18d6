import type { History } from '../history/history.js';
import type { Bounds } from './bounds.js';
import { crashes } from './crashes.js';
import { endings } from './progress/endings.js';
import { errors } from './progress/errors.js';
import { exclusion } from './exclusion/exclusion.js';
import { fifo } from './exclusion/fifo.js';
import { leftovers } from './progress/leftovers.js';
import { liveness } from './progress/liveness.js';
import { losses } from './progress/losses.js';
import { outcomes } from './progress/outcomes.js';
import { permits } from './exclusion/permits.js';
import { reentry } from './exclusion/reentry.js';
import { refusals } from './refusals.js';
import { tokens } from './exclusion/tokens.js';
import { tickRuns } from './ticks/tick-runs.js';
import type { Verdict } from './violation.js';
import { writes } from './exclusion/writes.js';

export type Checker = (history: History, bounds?: Bounds) => Verdict;

/** All checkers, by the name of their rule. Each is pure, and reports only what follows from the history. */
export const checkers: ReadonlyMap<string, Checker> = new Map<string, Checker>([
  ['exclusion', exclusion],
  ['permits', permits],
  ['tokens', tokens],
  ['writes', writes],
  ['reentry', reentry],
  ['ticks', tickRuns],
  ['fifo', fifo],
  ['endings', endings],
  ['liveness', liveness],
  ['refusals', refusals],
  ['losses', losses],
  ['errors', errors],
  ['outcomes', outcomes],
  ['leftovers', leftovers],
  ['crashes', crashes],
]);
