import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atExit } from '../../../test/support/process/at-exit.js';
import { C_COMPILER, findTools } from '../../../test/support/process/toolchain.mjs';

const SOURCE = fileURLToPath(new URL('clock-shim.c', import.meta.url));
const NS_PER_MS = 1_000_000n;
const { O_RDWR, O_CREAT } = constants;

/** The folder with the compiled shim and the offset of each clock: one for this process, and gone with its last clock. */
let folder: string | undefined;
const files = new Set<string>();
let lastNumber = 0;
atExit(() => folder && rmSync(folder, { recursive: true, force: true }));

/**
 * The clocks of processes that are started with {@link env}, redis-server as well as Node. The wall clock can be stepped while
 * they run, and the monotonic one fall behind, as it does in a suspend.
 */
export class SteppedClock implements Disposable {
  /** Why no clock can be stepped here, or undefined. */
  static readonly unsupportedReason: string | undefined = whyUnsupported();
  static readonly isSupported: boolean = SteppedClock.unsupportedReason === undefined;

  /** Into the environment of each process that shall go by this clock. */
  readonly env: Record<'LD_PRELOAD' | 'CLOCK_SHIM_FILE', string>;
  #offsetMs = 0;
  #suspendedMs = 0;

  private constructor(shim: string, file: string) {
    this.env = { LD_PRELOAD: shim, CLOCK_SHIM_FILE: file };
    files.add(file);
    this.#write();
  }

  /**
   * Compiles the shim, unless this process has another clock already.
   * @param env finds a C compiler, and installs one if that needs no confirmation
   * @throws Error without a compiler, or on a system without LD_PRELOAD
   */
  static create(env: NodeJS.ProcessEnv = process.env): SteppedClock {
    if (SteppedClock.unsupportedReason !== undefined) throw new Error(SteppedClock.unsupportedReason);
    folder ??= compileShim(env);
    return new SteppedClock(join(folder, 'clock-shim.so'), join(folder, `clock-${++lastNumber}`));
  }

  /** Its lead over the machine's clock. */
  get offsetMs(): number {
    return this.#offsetMs;
  }

  /** Forwards, or with a negative number backwards. */
  step(ms: number): void {
    this.#offsetMs += ms;
    this.#write();
  }

  /**
   * Simulates a suspend: the wall clock advances and the monotonic clock doesn't. Call it while its processes are
   * stopped, for no longer than that.
   */
  suspend(ms: number): void {
    this.#suspendedMs += ms;
    this.#write();
  }

  /** Processes that still run keep the clock that they have. */
  [Symbol.dispose](): void {
    if (!files.delete(this.env.CLOCK_SHIM_FILE) || folder === undefined) return;
    rmSync(files.size > 0 ? this.env.CLOCK_SHIM_FILE : folder, { recursive: true });
    if (files.size === 0) folder = undefined;
  }

  #write(): void {
    const bytes = Buffer.alloc(16);
    [this.#offsetMs, -this.#suspendedMs].forEach((ms, place) => {
      bytes.writeBigInt64LE(BigInt(Math.round(ms)) * NS_PER_MS, 8 * place);
    });
    // In place: processes have this very file in their memory.
    const file = openSync(this.env.CLOCK_SHIM_FILE, O_RDWR | O_CREAT);
    writeSync(file, bytes, 0, bytes.length, 0);
    closeSync(file);
  }
}

function whyUnsupported(): string | undefined {
  if (process.platform !== 'linux') return `Clocks are stepped by LD_PRELOAD, which ${process.platform} does not have`;
  const isContainer = process.env.REDIS_SERVER_IMAGE !== undefined && process.env.REDIS_SERVER_BIN === undefined;
  return isContainer ? 'The shim that steps clocks is a file of this machine, not of a container' : undefined;
}

function compileShim(env: NodeJS.ProcessEnv): string {
  const [compiler] = findTools([C_COMPILER], env);
  const target = mkdtempSync(join(tmpdir(), 'chaos-clock-'));
  const args = ['-shared', '-fPIC', '-O2', '-Wall', '-Werror', '-o', join(target, 'clock-shim.so'), SOURCE];
  const { status, stderr } = spawnSync(compiler!, args, { env, encoding: 'utf8' });
  if (status === 0) return target;
  rmSync(target, { recursive: true });
  throw new Error(`${compiler} could not compile clock-shim.c:\n${stderr}`);
}
