import { scenario as capacity } from './capacity/capacity.mjs';
import { scenario as commands } from './commands.mjs';
import { scenario as contended2ms } from './contended-2ms.mjs';
import { scenario as contendedEmpty } from './contended-empty.mjs';
import { scenario as contendedFifo } from './contended-fifo.mjs';
import { scenario as decorated } from './decorated.mjs';
import { scenario as fleetOfCrons } from './fleet-of-crons.mjs';
import { scenario as handover } from './handover.mjs';
import { scenario as importing } from './import.mjs';
import { scenario as held } from './held-10000.mjs';
import { scenario as cluster1 } from './cluster-1.mjs';
import { scenario as cluster8 } from './cluster-8.mjs';
import { scenario as cluster64 } from './cluster-64.mjs';
import { scenario as metrics } from './metrics.mjs';
import { scenario as network1 } from './network/network-1.mjs';
import { scenario as networkHandover } from './network/network-handover.mjs';
import { scenario as networkSeveral } from './network/network-several.mjs';
import { scenario as quorum1 } from './quorum-1.mjs';
import { scenario as quorum8 } from './quorum-8.mjs';
import { scenario as readMostly } from './read-mostly.mjs';
import { scenario as reentry } from './reentry.mjs';
import { scenario as roundTrips } from './network/round-trips.mjs';
import { scenario as semaphore1 } from './semaphore-1.mjs';
import { scenario as semaphore3 } from './semaphore-3.mjs';
import { scenario as traces } from './traces.mjs';
import { scenario as uncontended1 } from './uncontended-1.mjs';
import { scenario as uncontended64 } from './uncontended-64.mjs';
import { scenario as waiters } from './waiters-2000.mjs';
import { scenario as waitingCalls } from './waiting/waiting-calls.mjs';
import { scenario as waitingCandidates } from './waiting/waiting-candidates.mjs';
import { scenario as waitingFleet } from './waiting/waiting-fleet.mjs';

/** In the order of the report. `commands` uses the settings that `contended-empty` chooses. */
export const SCENARIOS = [
  uncontended1,
  uncontended64,
  contendedEmpty,
  contended2ms,
  contendedFifo,
  readMostly,
  semaphore1,
  semaphore3,
  commands,
  handover,
  held,
  waiters,
  waitingCalls,
  waitingCandidates,
  waitingFleet,
  fleetOfCrons,
  decorated,
  reentry,
  importing,
  metrics,
  traces,
  cluster1,
  cluster8,
  cluster64,
  quorum1,
  quorum8,
  roundTrips,
  network1,
  networkSeveral,
  networkHandover,
  capacity,
];

/** Scenarios that can be chosen by one name, and have a page of their own. @type {Record<string, string[]>} */
export const GROUPS = {
  network: SCENARIOS.filter(({ group }) => group === 'network').map(({ name }) => name),
};
