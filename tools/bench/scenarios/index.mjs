import { PAGE_SCENARIOS } from '../report/page.mjs';
import { scenario as capacity } from './capacity.mjs';
import { scenario as commands } from './commands.mjs';
import { scenario as contended2ms } from './contended-2ms.mjs';
import { scenario as contendedEmpty } from './contended-empty.mjs';
import { scenario as handover } from './handover.mjs';
import { scenario as held } from './held-10000.mjs';
import { scenario as importing } from './import.mjs';
import { scenario as jobsAtOnce } from './jobs-at-once.mjs';
import { scenario as outages } from './outages.mjs';
import { scenario as uncontended1 } from './uncontended-1.mjs';
import { scenario as uncontended64 } from './uncontended-64.mjs';

/** In the order of the report. `commands` uses the settings that `contended-empty` chooses. */
export const SCENARIOS = [
  uncontended1,
  uncontended64,
  contendedEmpty,
  contended2ms,
  commands,
  handover,
  held,
  jobsAtOnce,
  outages,
  importing,
  capacity,
];

/** Scenarios that can be chosen by one name. @type {Record<string, string[]>} */
export const GROUPS = { page: PAGE_SCENARIOS };
