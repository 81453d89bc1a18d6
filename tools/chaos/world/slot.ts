import type { TcpProxy } from '../../../test/support/network/tcp-proxy.js';
import type { SteppedClock } from '../servers/stepped-clock.js';
import type { WorkerProcess } from './worker-process.js';

/** The place of one worker: the process in it may die, and another one takes its place behind the same network. */
export interface Slot {
  readonly name: string;
  /** The networks in front of its servers; none where the worker finds Redis by itself, as through a sentinel. */
  readonly proxies: readonly TcpProxy[];
  /** Its wall clock, if this machine can move it. */
  readonly clock?: SteppedClock;
  worker: WorkerProcess;
  starts: number;
}
