import { longestScriptRow } from '../report/longest-script-row.js';
import { grouped, none, type Outcome, type Row } from '../report/row.js';
import { longestOf } from '../world/longest-script.js';
import { isFull, recoveryText, type Storm, type StormsResult } from './storms.js';

/** How long after a lease all of them work again. */
const AFTER_A_LEASE_MS = 5_000;
const LONGEST_SCRIPT_MS = 5;
/** What part of all connections may be made in a tenth of a second, when all of them broke at the same moment. */
const AT_ONCE = 1 / 4;
/** How much more or less memory Redis may use afterwards. */
const MEMORY = 1 / 4;
/** For commands, and for messages. */
const CONNECTIONS_OF_A_CLIENT = 2;

/** @param isStrict whether figures are rules that depend on the machine, or on how many clients there are */
export function stormsOutcome(result: StormsResult, isStrict: boolean): Outcome {
  const { size, clients, places, storms, verdicts, failures, left } = result;
  const scripts = storms.flatMap(({ longestScripts: { byClock, atWork } }) => [byClock, atWork]);
  const longest = longestOf(scripts.filter((script) => script !== undefined));
  return {
    rows: [
      figure(
        'clients, each with a place in each queue',
        `${grouped(clients)} in ${size.processes} processes, ${grouped(places)} places, leases of ${size.leaseMs / 1_000} s`,
      ),
      ...storms.map((storm) => recovery(storm, result)),
      ...storms.map((storm, index) => connections(storm, clients, isStrict && index > 0)),
      ...storms.slice(1).map((storm) => memory(storm, isStrict)),
      longestScriptRow(longest, isStrict ? LONGEST_SCRIPT_MS : undefined),
      ...verdicts.map(({ rule, violations, looked }) =>
        none(`violations: ${rule}`, violations.length, ` in ${grouped(looked)} looks`),
      ),
      none('waits that ended without a lease', failures.length),
      none('keys left, when all were killed and their leases were over', left.length),
    ],
    complaints: [
      ...verdicts.flatMap(({ violations }) => violations.map(({ rule, what }) => `storms: ${rule}: ${what}`)),
      ...failures.map((why) => `storms: ${why}`),
    ],
  };
}

function recovery(storm: Storm, { size, places }: StormsResult): Row {
  const { kind, recoveredMs, placesLater } = storm;
  const isLater = isFull(placesLater, { places, resources: { length: size.resources } });
  return {
    what: `${kind}: until every place is kept and every lock is handed over again`,
    target: 'a lease + 5 s',
    seen: `${recoveryText(storm)}; a lease later ${grouped(placesLater)} places`,
    met: recoveredMs !== undefined && recoveredMs <= size.leaseMs + AFTER_A_LEASE_MS && isLater,
  };
}

function connections({ kind, connections: { all, busiest } }: Storm, clients: number, isRule: boolean): Row {
  const most = AT_ONCE * CONNECTIONS_OF_A_CLIENT * clients;
  return {
    what: `${kind}: connections in the busiest tenth of a second`,
    target: isRule ? `at most ${grouped(most)}, a quarter of them` : 'a figure',
    seen: `${grouped(busiest)}, of ${grouped(all)} that were made`,
    met: !isRule || busiest <= most,
  };
}

function memory({ kind, memory: { before, after } }: Storm, isRule: boolean): Row {
  return {
    what: `${kind}: memory of Redis without buffers of connections, before it and a lease after it`,
    target: isRule ? 'the same within a quarter' : 'a figure',
    seen: `${megabytes(before)}, ${megabytes(after)}`,
    met: !isRule || Math.abs(after - before) <= MEMORY * before,
  };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function figure(what: string, seen: string): Row {
  return { what, target: 'a figure', seen, met: true };
}
