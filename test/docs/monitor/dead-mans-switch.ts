import { Logger } from '@nestjs/common';
import type { LockEvent } from 'nestjs-redis-lock';

const logger = new Logger('DeadMansSwitch');

/** @param checks the ping URL of each job to watch */
export function deadMansSwitch(checks: ReadonlyMap<string, string>) {
  // the last ping of each job, so that pings arrive in order
  const pings = new Map<string, Promise<void>>();
  return (event: LockEvent): void => {
    if (event.type !== 'tickStarted' && event.type !== 'tickFinished')
      return;
    const { job } = event;
    const url = checks.get(job);
    if (url === undefined) return;
    const isStart = event.type === 'tickStarted';
    const path = isStart ? '/start' : event.outcome === 'ok' ? '' : '/fail';
    // starts now, so that pings never pile up
    const signal = AbortSignal.timeout(isStart ? 5_000 : 10_000);
    const ping = async (): Promise<void> => {
      const { ok, status } = await fetch(url + path, {
        method: 'HEAD',
        signal,
      });
      if (!ok) throw new Error(`The monitor answered with ${status}`);
    };
    const warn = ({ message, cause }: Error & { cause?: Error }): void =>
      logger.warn(`No ping for ${job}: ${cause?.message || message}`);
    pings.set(
      job,
      (pings.get(job) ?? Promise.resolve()).then(ping).catch(warn),
    );
  };
}
