import { openSync, readSync } from 'node:fs';

/** The machine's time, if the clocks of this process are shifted: see clock-shim.c. */
const shim = process.env['CLOCK_SHIM_FILE'];
const file = shim === undefined ? undefined : openSync(shim, 'r');
const behind = Buffer.alloc(8);

/** Milliseconds on the machine's monotonic clock: the same in all processes of one machine, also for one that was suspended. */
export function machineNow(): number {
  const now = Number(process.hrtime.bigint()) / 1e6;
  if (file === undefined) return now;
  readSync(file, behind, 0, 8, 8);
  return now - Number(behind.readBigInt64LE()) / 1e6;
}
