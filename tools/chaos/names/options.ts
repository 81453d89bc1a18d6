import { inspect } from 'node:util';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { LockError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { OPTION_CALLS, type OptionCall } from './option-calls.js';

/** What came of a run over options. */
export interface OptionFuzz {
  calls: number;
  /** How many were refused with InvalidLockOptionsError, or ended with another error of ours. */
  refused: number;
  failed: number;
  /** What went wrong; with the seed and the path that show it again. */
  violations: string[];
}

/** Longer than any call takes that has nothing to wait for. */
const HANG_MS = 5_000;

/** Every public function with options of all kinds: each call succeeds, or is refused by an error of ours. */
export async function fuzzOptions(calls: number, seed: number, connection = 'memory:'): Promise<OptionFuzz> {
  const result: OptionFuzz = { calls: 0, refused: 0, failed: 0, violations: [] };
  const module = RedisLockModule.forRoot({ connection, waitMs: 1_000, shutdown: { drainMs: 0 } });
  await using app = disposable(await NestFactory.createApplicationContext(module, { logger: false }));
  const locks = app.get(RedisLockService);
  const stray: unknown[] = [];
  const note = (reason: unknown): void => void stray.push(reason);
  process.on('unhandledRejection', note);
  try {
    const numRuns = Math.ceil(calls / OPTION_CALLS.length);
    for (const each of OPTION_CALLS) {
      const property = fc.asyncProperty(each.given, async (given) => {
        result.calls++;
        const outcome = await outcomeOf(each, locks, given);
        if (outcome !== 'accepted') result[outcome]++;
        if (stray.length > 0) throw new Error(`unhandled rejection: ${inspect(stray.splice(0))}`);
      });
      // Not made smaller: each step of a call that hangs takes HANG_MS, and the test would be over before it could tell.
      const report = await fc.check(property, { seed, numRuns, endOnFailure: true });
      if (report.failed)
        result.violations.push(
          `${each.name}: ${String(report.errorInstance)}\n${await fc.asyncDefaultReportMessage(report)}`,
        );
    }
  } finally {
    process.off('unhandledRejection', note);
  }
  return result;
}

/** @throws Error for any other outcome */
async function outcomeOf(
  { name, call }: OptionCall,
  locks: RedisLockService,
  given: readonly unknown[],
): Promise<'accepted' | 'refused' | 'failed'> {
  let timer: NodeJS.Timeout | undefined;
  const hang = new Promise<'hangs'>((resolve) => (timer = setTimeout(resolve, HANG_MS, 'hangs')));
  try {
    const called = (async () =>
      call(locks, ...(given as Parameters<typeof call> extends [unknown, ...infer G] ? G : never)))();
    if ((await Promise.race([called, hang])) === 'hangs') throw new Error(`${name} hangs`);
    return 'accepted';
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
    return error.code === 'INVALID_LOCK_OPTIONS' ? 'refused' : 'failed';
  } finally {
    clearTimeout(timer);
  }
}

function disposable<T extends { close(): Promise<void> }>(app: T): T & AsyncDisposable {
  return Object.assign(app, { [Symbol.asyncDispose]: () => app.close() });
}
