// What the formula says of one fleet, as words and numbers. It needs nothing of Node: the calculator runs it in a browser.
import { formatNumber } from './format.mjs';

/**
 * @param {ReturnType<typeof import('../capacity/formula.mjs').needsOf>} needs
 * @param {number} [primaries] of a cluster; 1 is a server that is no cluster
 * @returns {[text: string, value: string][]}
 */
export function needsRows(needs, primaries = 1) {
  const { rates, perNode, bus } = needs;
  const isCluster = primaries > 1;
  return [
    ['Connections', whole(needs.connections)],
    ...(isCluster ? [['of these, to each node', whole(perNode.connections)]] : []),
    [isCluster ? 'Memory of all nodes' : 'Memory', size(needs.memoryBytes)],
    ['Scripts a second', whole(needs.scripts)],
    ['of these, probes', whole(rates.probe)],
    ['of these, scripts that keep places', whole(rates.keep)],
    ['of these, renewals', whole(rates.renewal)],
    ['of these, claims', whole(rates.claim)],
    ['of these, acquires and releases', whole(rates.pair)],
    ['Messages a second', whole(needs.published)],
    ['To Redis, a second', size(needs.receivedBytes)],
    ['From Redis, a second', size(needs.sentBytes)],
    ...(isCluster
      ? [
          ['Between nodes, a second', size(bus.bytes)],
          ['CPU of each node, % of a core', one(perNode.cpuPercent)],
        ]
      : [['CPU of Redis, % of a core', cpuText(needs)]]),
  ];
}

export function cpuText({ cpuPercent, cpuAtMostPercent }) {
  return `${one(cpuPercent)} (at most ${one(cpuAtMostPercent)})`;
}

export function size(bytes) {
  const units = ['B', 'kB', 'MB', 'GB'];
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1000 ** step;
  return `${formatNumber(value, value < 10 && step > 0 ? 1 : 0)} ${units[step]}`;
}

export const whole = (value) => formatNumber(value, 0);
export const one = (value) => formatNumber(value, 1);
