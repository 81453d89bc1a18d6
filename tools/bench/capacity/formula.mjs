// What a fleet needs of Redis. The page, the calculator of the site and the check of a measured fleet use this formula,
// with the constants in results/capacity.json. It imports nothing: the calculator runs it in a browser.

/** A place is kept at least this often, however long its lease is. */
const LONGEST_KEEP_S = 15;
/** On a cluster, a place is kept at least this often: a node may lose a message for another one. */
const LONGEST_CLUSTER_KEEP_S = 5;
/** How many places one script keeps. On a cluster they have to be in one slot, so it is one nearly always. */
const KEPT_AT_ONCE = 64;
/** Those are no scripts, but stand in some. */
const IN_SCRIPTS = ['keptPlaces', 'keptCandidates'];
/** Redis frees the buffer of a connection that has been silent for longer, in seconds. */
const BUFFERED_S = 2;
/** How long the claim of a tick is remembered (`maxClockSkewMs`), and how many runs of a job (`historySize`). */
const CLAIM_S = 600;
const HISTORY = 100;
/** How much of a core one Redis should use at most: the rest is for bursts, forks and other programs. */
const SAFE_PART = 0.5;

/**
 * A fleet. All but `instances`, `jobs`, `leaderships`, `everyS`, `leaseS` and `primaries` are numbers for each instance.
 *
 * @typedef {object} Fleet
 * @property {number} instances
 * @property {number} [leaseS] of all locks, in seconds
 * @property {number} [locks] held all the time
 * @property {number} [permits] of semaphores, held all the time
 * @property {number} [waits] calls that wait, each for another resource
 * @property {number} [leaderships] for which every instance is a candidate
 * @property {number} [jobs] that every instance has
 * @property {number} [everyS] how often each job is due, in seconds
 * @property {number} [pairs] free locks that are acquired and released in a second
 * @property {number} [historySize] how many runs of a job are kept
 * @property {number} [claimS] how long the claim of a tick is kept, in seconds
 * @property {number} [primaries] of a cluster; 1 is a server that is no cluster
 */

/**
 * @param {object} constants results/capacity.json
 * @param {Fleet} fleet
 */
export function needsOf(constants, fleet) {
  const { instances, primaries = 1 } = fleet;
  const rates = ratesOf(constants, fleet);
  const scripts = sum(Object.keys(rates).map((kind) => (IN_SCRIPTS.includes(kind) ? 0 : rates[kind])));
  const bus = busOf(constants, rates.probe, primaries);
  // On a cluster, an instance keeps all its places at the same moment: each node wakes up once for those that it has.
  const { places, keepS } = placesOf(fleet);
  const keepWakes = primaries > 1 ? (instances / keepS) * primaries * (1 - (1 - 1 / primaries) ** places) : rates.keep;
  const apart = scripts - rates.claim - rates.run - rates.keep + keepWakes;
  const cpu = cpuOf(constants, rates, { apart, bus, primaries });
  const bytes = (direction) => sum(Object.entries(rates).map(([kind, rate]) => rate * constants.work[kind][direction]));
  const clients = instances * connectionBytes(constants, scripts / instances, rates.probe > 0, primaries);
  const memory = { clients, data: dataOf(constants, fleet) };
  const memoryBytes = memory.clients + memory.data;
  return {
    connections: instances * (primaries + 1),
    perNode: {
      // Each instance sends commands to every primary, and listens on one node.
      connections: instances * (1 + 1 / primaries),
      cpuPercent: cpu.expected * 100,
      memoryBytes: memoryBytes / primaries,
    },
    rates,
    scripts,
    published: rates.probe,
    cpuPercent: cpu.expected * 100 * primaries,
    cpuAtMostPercent: cpu.atMost * 100 * primaries,
    receivedBytes: bytes('receivedBytes'),
    sentBytes: bytes('sentBytes'),
    memory,
    memoryBytes,
    bus,
  };
}

/** Scripts a second, by kind, and the places that the scripts of the kind `keep` keep. */
function ratesOf({ often }, fleet) {
  const { instances, leaseS = 30, locks = 0, permits = 0, waits = 0, leaderships = 0 } = fleet;
  const { jobs = 0, everyS = Infinity, pairs = 0, primaries = 1 } = fleet;
  const { places, candidates, keepS } = placesOf(fleet);
  const kept = { waits: waits / keepS, candidates: candidates / keepS };
  const keep =
    primaries > 1
      ? (kept.waits + kept.candidates) * often.kept
      : (Math.ceil(places / KEPT_AT_ONCE) / keepS) * often.keep;
  return {
    probe: places > 0 ? instances * often.probe : 0,
    keep: instances * keep,
    keptPlaces: instances * kept.waits * often.kept,
    keptCandidates: instances * kept.candidates * often.kept,
    renewal: ((instances * locks + leaderships) * often.renewal) / (leaseS / 3),
    renewedPermit: (instances * permits * often.renewal) / (leaseS / 3),
    claim: (instances * jobs) / everyS,
    run: jobs / everyS,
    pair: instances * pairs * 2,
  };
}

/** The places of an instance in queues, and how often they are kept. */
function placesOf({ instances, leaseS = 30, waits = 0, leaderships = 0, primaries = 1 }) {
  // One instance leads, and the others wait.
  const candidates = leaderships * (1 - 1 / instances);
  const keepS = Math.min(leaseS / 3, primaries > 1 ? LONGEST_CLUSTER_KEEP_S : LONGEST_KEEP_S);
  return { places: waits + candidates, candidates, keepS };
}

/**
 * Of one node: work, and what Redis needs to wake up. Scripts that come together wake it once: `expected` is for scripts
 * that come as in the measured fleets, `atMost` for scripts of which each comes alone, until Redis is too busy to sleep.
 *
 * @param {object} all
 * @param {number} all.apart how many scripts a second do not come together anyway, as the claims of a tick do
 */
function cpuOf({ work, wake, server, cluster }, rates, { apart, bus, primaries }) {
  const ofScripts = sum(Object.entries(rates).map(([kind, rate]) => rate * work[kind].cpuUs)) / 1e6;
  const ownUs = primaries > 1 ? cluster.serverCpuUs : server.cpuUs;
  const busy = (ofScripts + bus.cpuPercent / 100) / primaries + ownUs / 1e6;
  const wakeS = wake.us / 1e6;
  // A message of another node needs no answer: it wakes for less.
  const wakes = (apart + (bus.messages * cluster.busWakeUs) / wake.us) / primaries;
  const expected = busy + (wakes * wakeS) / (1 + wakes * wake.togetherS);
  const alone = (busy + wakes * wakeS) / (1 + wakes * wakeS);
  return { expected, atMost: Math.max(expected, alone) };
}

/**
 * The connections of one instance. Each has a buffer until it is silent for a while: the one that listens is not where
 * probes come, and those to the primaries are not where scripts are sent often enough.
 */
function connectionBytes({ bytes: { instance } }, scripts, isListening, primaries) {
  const listener = instance.idle / 2 + (isListening ? instance.listening - instance.sending : 0);
  const buffered = Math.min(1, (BUFFERED_S * scripts) / primaries);
  return listener + primaries * (instance.idle / 2 + buffered * (instance.sending - instance.idle));
}

function dataOf({ bytes }, fleet) {
  const { instances, locks = 0, permits = 0, waits = 0, leaderships = 0, jobs = 0, everyS = Infinity } = fleet;
  const { historySize = HISTORY, claimS = CLAIM_S, primaries = 1 } = fleet;
  const claims = Math.ceil(claimS / everyS);
  const ofJob = bytes.job + historySize * bytes.run + claims * bytes.claim + instances * bytes.jobInstance;
  return (
    primaries * bytes.server +
    instances * (bytes.inbox + locks * bytes.lock + permits * bytes.permit + waits * bytes.wait) +
    leaderships * (bytes.lock + (instances - 1) * bytes.candidate) +
    (everyS < Infinity ? jobs * ofJob : 0)
  );
}

/** What the nodes of a cluster tell one another: each message goes to all of them. */
function busOf({ cluster }, published, primaries) {
  return {
    messages: published * (primaries - 1),
    bytes: published * (primaries - 1) * cluster.busBytes,
    cpuPercent: (published * (primaries - 1) * cluster.busCpuUs) / 1e4,
  };
}

/** How many of such instances one Redis core carries, with a reserve; `Infinity` for instances that send nothing. */
export function carriedBy(constants, fleet) {
  let [carried, tooMany] = [1, 2];
  const fits = (instances) => needsOf(constants, { ...fleet, instances }).cpuAtMostPercent <= SAFE_PART * 100;
  if (!fits(1)) return 0;
  while (fits(tooMany)) {
    [carried, tooMany] = [tooMany, tooMany * 2];
    if (tooMany > 1e7) return Infinity;
  }
  while (tooMany - carried > 1) {
    const middle = Math.floor((carried + tooMany) / 2);
    if (fits(middle)) carried = middle;
    else tooMany = middle;
  }
  return carried;
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
