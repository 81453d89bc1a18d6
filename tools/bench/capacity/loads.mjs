// The loads of which constants are made, one kind of work in each, and the fleet that checks them.

/** The numbers of instances: two to measure, and a third one to check. */
export const SIZES = { small: 50, large: 200, check: 400 };
/** The same in a smoke run. */
export const QUICK_SIZES = { small: 4, large: 12, check: 20 };

/** Short leases: what is done once in a third of a lease is done more often, and is more than noise. */
const SHORT_MS = 6_000;
const USUAL_MS = 30_000;

/** @type {Record<string, Omit<import('./stage.mjs').Load, 'instances'>>} */
export const LOADS = {
  idle: { leaseMs: USUAL_MS },
  used: { leaseMs: USUAL_MS, pairs: 10 },
  usedRarely: { leaseMs: USUAL_MS, pairs: 0.5 },
  usedOften: { leaseMs: USUAL_MS, pairs: 40 },
  probed: { leaseMs: USUAL_MS, probes: 20 },
  held: { leaseMs: SHORT_MS, locks: 20 },
  pooled: { leaseMs: SHORT_MS, permits: 10 },
  waitingFew: { leaseMs: SHORT_MS, waits: 5 },
  waitingMany: { leaseMs: SHORT_MS, waits: 40 },
  led: { leaseMs: SHORT_MS, leaderships: 20 },
  claimed: { leaseMs: USUAL_MS, jobs: 10, everyMs: 2_000 },
};

/** All kinds of work at the same time, with leases of the default length. */
export const FLEET = {
  leaseMs: USUAL_MS,
  locks: 5,
  permits: 2,
  waits: 10,
  leaderships: 10,
  jobs: 5,
  everyMs: 10_000,
  pairs: 0.2,
};

/** On a cluster, where the places of different queues are kept by different scripts. */
export const CLUSTER_FLEET = { leaseMs: 15_000, waits: 5, leaderships: 5 };
