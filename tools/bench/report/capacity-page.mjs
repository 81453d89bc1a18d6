// The parts of docs/operations/capacity.md that are measured, or computed of what was measured.
import { deviation } from '../capacity/check.mjs';
import { carriedBy, needsOf } from '../capacity/formula.mjs';
import { EXAMPLE, FLEETS } from '../capacity/examples.mjs';
import { cpuText, needsRows, one, size, whole } from './capacity-rows.mjs';
import { formatNumber } from './format.mjs';
import { markdownTable } from './markdown.mjs';

/** Paths from the root of the repository. */
export const CAPACITY_PAGE = 'docs/operations/capacity.md';
export const CAPACITY_RESULTS = 'tools/bench/results/capacity.json';

const PART = /<!-- generated: capacity (\w+) -->\n[^]*?<!-- end -->/g;

/**
 * @param {string} text the page as it is
 * @param {object} results as in results/capacity.json
 * @returns {string} the page with these results
 */
export function capacityPage(text, results) {
  return text.replace(PART, (_, part) => {
    const body = PARTS[part](results);
    return [`<!-- generated: capacity ${part} -->`, '', body, '', '<!-- end -->'].join('\n');
  });
}

const PARTS = {
  measured: measuredPart,
  often: oftenPart,
  work: workPart,
  memory: memoryPart,
  wake: wakePart,
  check: checkPart,
  examples: examplesPart,
  carried: carriedPart,
  messages: messagesPart,
  cluster: clusterPart,
  large: largePart,
};

function measuredPart({ measured: { date, load, machine, versions }, sizes }) {
  const state = load < machine.cores / 2 ? 'The machine was quiet' : 'Other work ran on the machine';
  return (
    `Measured on ${date.slice(0, 10)} with ${sizes.small} and ${sizes.large} instances, and checked with ${sizes.check}. ` +
    `Redis ${versions.redis}, Node ${versions.node}, ${machine.cpu}, ${machine.cores} cores. ${state} ` +
    `(load average ${load.toFixed(1)} before it began).`
  );
}

function oftenPart({ constants: { often } }) {
  return markdownTable(
    [
      ['', 'Name', 'Measured'],
      ['Probes of an instance in a second', '`probe`', two(often.probe)],
      ['Scripts that keep the places of an instance, in `K` seconds, for each 64 places', '`keep`', two(often.keep)],
      ['How often a place is kept in `K` seconds', '`kept`', two(often.kept)],
      ['Renewals of a lease in a third of it', '`renewal`', two(often.renewal)],
    ],
    2,
  );
}

const KINDS = {
  probe: 'Probe of an inbox, with its message',
  keep: 'Script that keeps places, without them',
  keptPlaces: 'Place of a waiting call, in it',
  keptCandidates: 'Place of a candidate, in it',
  renewal: 'Renewal of a lock',
  renewedPermit: 'Renewal of a permit',
  claim: 'Claim of a tick',
  run: 'Run of a job, beside its claims',
  pair: '`acquire` or `release` of a free lock',
};

function workPart({ constants: { work } }) {
  const rows = Object.entries(KINDS).map(([kind, text]) => {
    const { cpuUs, receivedBytes, sentBytes } = work[kind];
    return [text, one(cpuUs), whole(receivedBytes), whole(sentBytes)];
  });
  return markdownTable([['', 'CPU of Redis, µs', 'Bytes to Redis', 'Bytes from Redis'], ...rows]);
}

function memoryPart({ constants: { bytes } }) {
  const rows = [
    ['Connections of an instance that sends nothing', bytes.instance.idle],
    ['Connections of an instance that sends a script every 2 s or more often', bytes.instance.sending],
    ['Connections of an instance in which anything waits', bytes.instance.listening],
    ['Inbox of an instance', bytes.inbox],
    ['Held lock', bytes.lock],
    ['Permit of a semaphore', bytes.permit],
    ['Waiting call, alone in its queue', bytes.wait],
    ['Candidate, in a queue with others', bytes.candidate],
    ['Record of a job', bytes.job],
    ['Each run in the history of a job (100)', bytes.run],
    ['Claim of a tick (for 10 minutes)', bytes.claim],
    ['Each instance that has a job, for each job', bytes.jobInstance],
    ['The server itself, with the scripts', bytes.server],
  ];
  return markdownTable([['', 'Bytes'], ...rows.map(([text, value]) => [text, whole(value)])]);
}

function wakePart({ constants: { wake, server } }) {
  const atMost = wake.togetherS > 0 ? wake.us / wake.togetherS / 1e4 : Infinity;
  const limit = Number.isFinite(atMost)
    ? ` Where scripts come together, that is ${one(atMost)} % of a core at most.`
    : '';
  return (
    `Waking up took ${one(wake.us)} µs here for a script that comes alone.${limit} ` +
    `A server without clients uses ${two(server.cpuUs / 1e4)} % of a core.`
  );
}

function checkPart({ check, clusters }) {
  const table = (compared) =>
    markdownTable([
      ['', 'Formula', 'Measured', 'Off by'],
      ...compared.map((row) => [named(row), three(row.predicted), three(row.measured), percent(deviation(row))]),
    ]);
  const onCluster = clusters.find(({ primaries }) => primaries === 3) ?? clusters[0];
  return [
    `${fleetText(check.load)}:`,
    table(check.compared),
    `A cluster of ${onCluster.primaries} primaries with ${onCluster.instances} instances (${fleetText(onCluster.load)}):`,
    table(onCluster.compared),
  ].join('\n\n');
}

function fleetText({ instances, locks, permits, waits, leaderships, jobs, everyMs, pairs, leaseMs }) {
  const parts = [
    locks && `${locks} held locks`,
    permits && `${permits} permits`,
    waits && `${waits} waiting calls`,
    leaderships && `${leaderships} leaderships`,
    jobs && `${jobs} jobs every ${everyMs / 1000} s`,
    pairs && `${pairs} free locks a second`,
  ].filter(Boolean);
  const start = instances ? `${formatNumber(instances, 0)} instances, each with ` : 'each with ';
  return `${start}${parts.join(', ')}, leases of ${leaseMs / 1000} s`;
}

function examplesPart({ constants }) {
  const columns = EXAMPLE.sizes.map((instances) => needsOf(constants, { ...EXAMPLE.fleet, instances }));
  const rows = columns.map((needs) => needsRows(needs));
  return markdownTable([
    ['', ...EXAMPLE.sizes.map((instances) => `${whole(instances)} instances`)],
    ...rows[0].map(([text], index) => [text, ...rows.map((column) => column[index][1])]),
  ]);
}

function carriedPart({ constants }) {
  const rows = FLEETS.map(({ text, fleet }) => {
    const carried = carriedBy(constants, fleet);
    return [text, whole(carried), whole(needsOf(constants, { ...fleet, instances: carried }).scripts)];
  });
  return markdownTable([['Each instance', 'Instances', 'Scripts a second'], ...rows]);
}

function messagesPart({ clusters, constants: { cluster } }) {
  const rows = clusters.map(({ primaries, published, sharded }) => [
    `${primaries}`,
    one(published.cpuUs),
    one(published.aloneCpuUs),
    one(sharded.cpuUs),
    one(sharded.aloneCpuUs),
    whole(published.busBytes ?? 0),
    whole(sharded.busBytes ?? 0),
  ]);
  const header = [
    'Primaries',
    '`PUBLISH`, µs',
    'alone, µs',
    '`SPUBLISH`, µs',
    'alone, µs',
    '`PUBLISH`, bytes between nodes',
    '`SPUBLISH`, bytes',
  ];
  return [
    markdownTable([header, ...rows]),
    `So each further node costs ${one(cluster.busCpuUs)} µs and ${whole(cluster.busBytes)} bytes for each message, and ` +
      `${one(cluster.busWakeUs)} µs more where the message comes alone and wakes it up.`,
  ].join('\n\n');
}

function clusterPart({ constants }) {
  const { fleet } = EXAMPLE;
  const rows = [1_000, 10_000].flatMap((instances) =>
    [1, 3, 9].map((primaries) => {
      const needs = needsOf(constants, { ...fleet, instances, primaries });
      const { bus } = needs;
      return [
        `${formatNumber(instances, 0)} instances, ${primaries === 1 ? 'one server' : `${primaries} primaries`}`,
        whole(needs.perNode.connections),
        whole(needs.scripts),
        `${one(needs.perNode.cpuPercent)}`,
        `${one(bus.cpuPercent / primaries)}`,
        size(bus.bytes),
      ];
    }),
  );
  const header = [
    '',
    'Connections of a node',
    'Scripts a second, all nodes',
    'CPU of a node, %',
    'of this, for messages',
    'Between nodes, a second',
  ];
  return markdownTable([header, ...rows]);
}

function largePart({ constants }) {
  const instances = 10_000;
  const needs = needsOf(constants, { ...EXAMPLE.fleet, instances });
  const { memory } = needs;
  const { jobs, everyS } = EXAMPLE.fleet;
  const burst = instances * jobs;
  return [
    `- **Connections**: ${whole(needs.connections)}. The default of \`maxclients\` is 10,000, and each one needs a file`,
    `  descriptor (\`ulimit -n\`).`,
    `- **Memory**: ${size(memory.clients)} for connections and ${size(memory.data)} for data.`,
    `- **CPU**: ${cpuText(needs)} % of a core: more than one Redis should carry.`,
    `- **Bursts**: where ${jobs} jobs are due at the same moment every ${everyS} s, ${whole(burst)} claims arrive at once:`,
    `  ${two((burst * constants.work.claim.cpuUs) / 1e6)} s of work, in which other commands wait. Give the jobs`,
    `  [\`spreadMs\`](../guide/cron.md), or schedules that are not due at the same second.`,
  ].join('\n');
}

function named({ name, unit }) {
  const text = name[0].toUpperCase() + name.slice(1);
  return unit === '' ? text : `${text}, ${unit}`;
}

const percent = (part) => `${part < 0 ? '−' : '+'}${Math.abs(part * 100).toFixed(0)} %`;
const two = (value) => formatNumber(value, 2);
const three = (value) => formatNumber(value, value < 10 ? 2 : value < 1000 ? 1 : 0);
