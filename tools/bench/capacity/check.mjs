// How far what the formula says lies from a fleet that was measured.
import { needsOf } from './formula.mjs';

/** @typedef {{ name: string, unit: string, predicted: number, measured: number }} Compared */

/**
 * @param {object} constants
 * @param {import('./stage.mjs').Load} load
 * @param {object} used what `measureLoad` returns
 * @returns {Compared[]}
 */
export function compare(constants, load, used) {
  const { everyMs, leaseMs, ...fleet } = load;
  const { counts, seconds } = used;
  const ticks = everyMs ? Math.max(...[counts.endRun ?? 0].map((runs) => runs / load.jobs)) : 0;
  const everyS = everyMs ? everyMs / 1000 : undefined;
  const needs = needsOf(constants, {
    ...fleet,
    leaseS: leaseMs / 1000,
    ...(everyS && { everyS, historySize: ticks, claimS: ticks * everyS }),
  });
  const of = (...names) => names.reduce((sum, name) => sum + (counts[name] ?? 0), 0) / seconds;
  const { rates, memory } = needs;
  return [
    row('connections', '', needs.connections, used.connections),
    row('memory of connections', 'bytes', memory.clients, used.clientBytes),
    row('memory of data', 'bytes', memory.data - (load.primaries ?? 1) * constants.bytes.server, used.dataBytes),
    row('scripts', '/s', needs.scripts, used.scripts / seconds),
    row('of these, probes', '/s', rates.probe, of('probeInbox')),
    row('of these, keeps', '/s', rates.keep, of('keep')),
    row('places kept', '/s', rates.keptPlaces + rates.keptCandidates, of('keptPlaces')),
    row('renewals', '/s', rates.renewal + rates.renewedPermit, of('renew')),
    row('claims', '/s', rates.claim, of('claimTick')),
    row('acquires and releases', '/s', rates.pair, of('acquire', 'release')),
    row('messages', '/s', needs.published, used.published / seconds),
    row('bytes to Redis', '/s', needs.receivedBytes, used.received / seconds),
    row('bytes from Redis', '/s', needs.sentBytes, used.sent / seconds),
    row('CPU of Redis', '% of a core', needs.cpuPercent, used.cpuMs / seconds / 10),
  ].filter(({ predicted, measured }) => predicted > 0 || measured > 0);
}

function row(name, unit, predicted, measured) {
  return { name, unit, predicted, measured };
}

/** @param {Compared} compared @returns {number} as a part of what was measured */
export function deviation({ predicted, measured }) {
  return predicted / measured - 1;
}
