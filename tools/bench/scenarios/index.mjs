import { PAGE_SCENARIOS } from '../report/page.mjs';
import { clusters } from './cluster.mjs';
import { scenario as commands } from './commands.mjs';
import { scenario as contended2ms } from './contended-2ms.mjs';
import { scenario as contendedEmpty } from './contended-empty.mjs';
import { scenario as contendedFifo } from './contended-fifo.mjs';
import { scenario as decorated } from './decorated.mjs';
import { fleets } from './fleets.mjs';
import { scenario as fleetOfCrons } from './fleet-of-crons.mjs';
import { scenario as handover } from './handover.mjs';
import { scenario as importing } from './import.mjs';
import { scenario as held } from './held-10000.mjs';
import { scenario as jobsAtOnce } from './jobs-at-once.mjs';
import { scenario as network1 } from './network/network-1.mjs';
import { scenario as networkHandover } from './network/network-handover.mjs';
import { scenario as networkSeveral } from './network/network-several.mjs';
import { observed } from './observed.mjs';
import { quorums } from './quorum.mjs';
import { scenario as readMostly } from './read-mostly.mjs';
import { scenario as reentry } from './reentry.mjs';
import { scenario as roundTrips } from './network/round-trips.mjs';
import { semaphores } from './semaphores.mjs';
import { scenario as uncontended1 } from './uncontended-1.mjs';
import { scenario as uncontended64 } from './uncontended-64.mjs';
import { scenario as waiters } from './waiters-2000.mjs';

/** In the order of the report. `commands` uses the settings that `contended-empty` chooses. */
export const SCENARIOS = [
  uncontended1,
  uncontended64,
  contendedEmpty,
  contended2ms,
  contendedFifo,
  readMostly,
  ...semaphores,
  commands,
  handover,
  held,
  waiters,
  ...fleets,
  fleetOfCrons,
  jobsAtOnce,
  decorated,
  reentry,
  importing,
  ...observed,
  ...clusters,
  ...quorums,
  roundTrips,
  network1,
  networkSeveral,
  networkHandover,
];

/** Scenarios that can be chosen by one name. @type {Record<string, string[]>} */
export const GROUPS = {
  network: SCENARIOS.filter(({ group }) => group === 'network').map(({ name }) => name),
  page: PAGE_SCENARIOS,
};
