// The fleets that the page computes.

/** The worked example, at three sizes. */
export const EXAMPLE = {
  sizes: [10, 1_000, 10_000],
  fleet: { leaseS: 30, jobs: 10, everyS: 60, leaderships: 5, locks: 5, waits: 5, pairs: 1 },
};

/** What each instance does where it is asked how many of them one core carries. */
export const FLEETS = [
  { text: 'waits for one lock', fleet: { waits: 1 } },
  { text: 'is a candidate for 20 leaderships', fleet: { leaderships: 20 } },
  { text: 'the same, and has 20 jobs that are due every 10 s', fleet: { leaderships: 20, jobs: 20, everyS: 10 } },
  { text: 'holds 10 locks with leases of 30 s', fleet: { locks: 10 } },
  { text: 'acquires and releases 10 free locks a second', fleet: { pairs: 10 } },
  { text: 'does what the example says', fleet: EXAMPLE.fleet },
];
