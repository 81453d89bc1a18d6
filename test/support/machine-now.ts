/** Milliseconds on the machine's monotonic clock: the same in all processes of one machine. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
