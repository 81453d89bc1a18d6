import type { History } from '../history/history.js';
import type { Bounds } from './bounds.js';
import { crashes } from './crashes.js';
import { endings } from './endings.js';
import { errors } from './errors.js';
import { exclusion } from './exclusion.js';
import { fifo } from './fifo.js';
import { leftovers } from './leftovers.js';
import { liveness } from './liveness.js';
import { losses } from './losses.js';
import { outcomes } from './outcomes.js';
import { permits } from './permits.js';
import { reentry } from './reentry.js';
import { tokens } from './tokens.js';
import { tickRuns } from './tick-runs.js';
import type { Verdict } from './violation.js';
import { writes } from './writes.js';

export type Checker = (history: History, bounds?: Bounds) => Verdict;

/** All of them, by the name of their rule. Each is pure, and says nothing that does not follow from the history. */
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
  ['losses', losses],
  ['errors', errors],
  ['outcomes', outcomes],
  ['leftovers', leftovers],
  ['crashes', crashes],
]);
