/** Nanoseconds of the monotonic clock, which all processes of a host share. Exact as a number for 104 days of uptime. */
export function nowNs() {
  return Number(process.hrtime.bigint());
}

/** Sleeps until shortly after `ns`, so that several processes begin together. */
export async function untilNs(ns) {
  for (let left = ns - nowNs(); left > 0; left = ns - nowNs()) {
    await new Promise((resolve) => setTimeout(resolve, Math.ceil(left / 1e6)));
  }
}
