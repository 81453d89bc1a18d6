// From what was measured at two sizes to constants: each is how much more the larger fleet needs, for each one more.

/** What is tried for how close scripts have to be to wake Redis once. */
const TOGETHER_STEP_S = 0.000_1;
const LONGEST_TOGETHER_S = 0.02;

/**
 * @typedef {Record<string, number>} Used what `measureLoad` returns
 * @param {Record<string, { load: object, small: Used, large: Used }>} stages by their names in loads.mjs
 * @param {{ job: number, run: number, claim: number, runCpuUs: number, runReceived: number, runSent: number }} jobs
 * @param {number} serverBytes of a server without data or clients
 */
export function fit(stages, jobs, serverBytes) {
  const server = { cpuUs: meanOf(stages.idle, ({ cpuMs, seconds }) => (cpuMs * 1000) / seconds) };
  const { pair, wake } = fitWake([stages.usedRarely, stages.used, stages.usedOften], server);
  const work = { pair: { cpuUs: pair, ...bytesOf(stages.used, scriptsOf('acquire', 'release')) } };
  const known = { pair: scriptsOf('acquire', 'release') };

  /** What one more of these needs, beside what is known. */
  const add = (kind, stage, countOf) => {
    work[kind] = oneMore(stage, countOf, { server, wake, work, known });
    known[kind] = countOf;
  };
  add('probe', stages.probed, scriptsOf('probeInbox'));
  add('renewal', stages.held, scriptsOf('renew'));
  const byScript = (stage) => oneMore(stage, scriptsOf('keep'), { server, wake, work, known });
  const [few, many] = [byScript(stages.waitingFew), byScript(stages.waitingMany)];
  const [placesFew, placesMany] = [placesInScript(stages.waitingFew), placesInScript(stages.waitingMany)];
  work.keptPlaces = combine(many, few, (a, b) => Math.max(0, (a - b) / (placesMany - placesFew)));
  work.keep = combine(few, work.keptPlaces, (script, place) => Math.max(0, script - place * placesFew));
  work.renewedPermit = oneMore(stages.pooled, scriptsOf('renew'), { server, wake, work, known: {} });
  known.keep = scriptsOf('keep');
  work.keptCandidates = oneMore(stages.led, scriptsOf('keptPlaces'), { server, wake, work, known });
  work.claim = oneMore(stages.claimed, scriptsOf('claimTick'), { server, wake, work, known });
  work.run = {
    cpuUs: Math.max(0, jobs.runCpuUs - work.claim.cpuUs),
    receivedBytes: Math.max(0, jobs.runReceived - work.claim.receivedBytes),
    sentBytes: Math.max(0, jobs.runSent - work.claim.sentBytes),
  };
  return { often: oftenOf(stages), work, wake, server, bytes: memoryOf(stages, jobs, serverBytes) };
}

/** How often an instance probes in a second; and scripts, places and leases in the time in which each is due once. */
function oftenOf({ waitingFew, waitingMany, led, held }) {
  const rate = (stage, name, periods) =>
    slope(stage, ({ counts, seconds }) => ((counts[name] ?? 0) / seconds) * periods(stage.load));
  const third = ({ leaseMs }) => leaseMs / 3_000;
  const waiting = [waitingFew, waitingMany, led];
  const keeps = waiting.map((stage) => rate(stage, 'keep', third));
  const kept = waiting.map((stage) => rate(stage, 'keptPlaces', third) / (stage.load.waits ?? stage.load.leaderships));
  return {
    probe: mean(waiting.map((stage) => rate(stage, 'probeInbox', () => 1))),
    keep: mean(keeps),
    kept: mean(kept),
    renewal: rate(held, 'renew', third) / held.load.locks,
  };
}

function memoryOf(stages, jobs, server) {
  const { idle, held, pooled, waitingFew, waitingMany, led, claimed } = stages;
  const data = (stage) => slope(stage, ({ dataBytes }) => dataBytes);
  const clients = (stage) => slope(stage, ({ clientBytes }) => clientBytes);
  const inbox = data(idle);
  return {
    server,
    instance: {
      idle: clients(idle),
      sending: clients(stages.settledUsed),
      listening: clients(stages.settledWaiting),
    },
    inbox,
    lock: (data(held) - inbox) / held.load.locks,
    permit: (data(pooled) - inbox) / pooled.load.permits,
    wait: (data(waitingMany) - data(waitingFew)) / (waitingMany.load.waits - waitingFew.load.waits),
    candidate: (data(led) - inbox) / led.load.leaderships,
    job: jobs.job,
    run: jobs.run,
    claim: jobs.claim,
    jobInstance: (data(claimed) - inbox) / claimed.load.jobs,
  };
}

/**
 * The processor time of a script is its work, and a share of the time in which Redis wakes up. The more scripts there
 * are, the more of them come together.
 *
 * @returns {{ pair: number, wake: { us: number, togetherS: number } }} microseconds
 */
export function fitWake(stages, server) {
  const points = stages
    .flatMap(({ small, large }) => [small, large])
    .map(({ cpuMs, seconds, scripts }) => ({
      rate: scripts / seconds,
      us: (cpuMs * 1000 - server.cpuUs * seconds) / scripts,
    }));
  let best;
  for (let togetherS = 0; togetherS <= LONGEST_TOGETHER_S; togetherS += TOGETHER_STEP_S) {
    const { work, us, error } = leastSquares(points.map((one) => ({ ...one, share: 1 / (1 + one.rate * togetherS) })));
    if (work >= 0 && us >= 0 && !(error >= best?.error)) best = { work, us, togetherS, error };
  }
  return { pair: best.work, wake: { us: best.us, togetherS: best.togetherS } };
}

/** Of `us = work + share * wake`, each weighted by its size. */
function leastSquares(points) {
  let [ww, ws, ss, wy, sy] = [0, 0, 0, 0, 0];
  for (const { us, share } of points) {
    const weight = 1 / us ** 2;
    ww += weight;
    ws += weight * share;
    ss += weight * share ** 2;
    wy += weight * us;
    sy += weight * share * us;
  }
  const determinant = ww * ss - ws ** 2;
  const [work, wake] =
    Math.abs(determinant) < 1e-12
      ? [wy / ww, 0]
      : [(wy * ss - sy * ws) / determinant, (sy * ww - wy * ws) / determinant];
  const error = points.reduce((total, { us, share }) => total + ((work + share * wake - us) / us) ** 2, 0);
  return { work, us: wake, error };
}

/** What one more of what is counted needs, beside the server, waking up, and what is known. */
function oneMore(stage, countOf, { server, wake, work, known }) {
  const rest = (used, total, field) =>
    total - Object.entries(known).reduce((sum, [kind, count]) => sum + count(used) * work[kind][field], 0);
  const per = (value) => {
    const counted = countOf(stage.large) - countOf(stage.small);
    return Math.max(0, (value(stage.large) - value(stage.small)) / counted);
  };
  return {
    cpuUs: per((used) => rest(used, used.cpuMs * 1000 - awakeUs(used, server, wake), 'cpuUs')),
    receivedBytes: per((used) => rest(used, used.received, 'receivedBytes')),
    sentBytes: per((used) => rest(used, used.sent, 'sentBytes')),
  };
}

function bytesOf(stage, countOf) {
  const { receivedBytes, sentBytes } = oneMore(stage, countOf, {
    server: { cpuUs: 0 },
    wake: { us: 0, togetherS: 0 },
    work: {},
    known: {},
  });
  return { receivedBytes, sentBytes };
}

/** All claims of a tick come together, and wake Redis once. */
function awakeUs({ scripts, seconds, counts }, server, { us, togetherS }) {
  const apart = scripts - (counts.claimTick ?? 0) - (counts.endRun ?? 0);
  return server.cpuUs * seconds + (apart * us) / (1 + (apart / seconds) * togetherS);
}

function scriptsOf(...names) {
  return ({ counts }) => names.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
}

function placesInScript({ small, large }) {
  const of = scriptsOf('keptPlaces');
  const scripts = scriptsOf('keep');
  return (of(small) + of(large)) / (scripts(small) + scripts(large));
}

function combine(one, other, calculate) {
  return Object.fromEntries(Object.keys(one).map((field) => [field, calculate(one[field], other[field])]));
}

/** For each one more instance. */
function slope({ small, large }, value) {
  return (value(large) - value(small)) / (large.instances - small.instances);
}

function meanOf({ small, large }, value) {
  return mean([value(small), value(large)]);
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
