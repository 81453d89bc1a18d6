// A worker: a process of an application that locks by the published API, and says everything it does in a history file.
// With WorkerSettings as JSON in CHAOS_WORKER, and an IPC channel to the harness.
import { NestFactory } from '@nestjs/core';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import { HistoryLog } from '../history/history-log.js';
import { WitnessClient } from '../witness/witness-client.js';
import { Bench } from './bench.js';
import { campaign } from './candidate.js';
import { observe } from './observer.js';
import { answerMsOf, type Command, type WorkerSettings } from './settings.js';
import { tick } from './ticker.js';
import { call } from './ways.js';

/** Blocks the loop on a value that never changes. */
const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4));

const settings = JSON.parse(process.env['CHAOS_WORKER']!) as WorkerSettings;
const log = new HistoryLog(settings.history, settings.instanceId);

let isReady = false;
for (const event of ['unhandledRejection', 'uncaughtException', 'warning'] as const) {
  process.on(event, (error: unknown) => {
    log.crash(event, error);
    if (!isReady) process.exit(1);
  });
}

const { server, keyPrefix, leaseMs, instanceId } = settings;
const options = {
  ...server,
  keyPrefix,
  leaseMs,
  instanceId,
  attemptTimeoutMs: answerMsOf(leaseMs),
  shutdown: { drainMs: leaseMs },
};
const app = await NestFactory.createApplicationContext(RedisLockModule.forRoot(options), { logger: false });
const witness = settings.witness === undefined ? undefined : await WitnessClient.connect(settings.witness);
const bench = new Bench(app.get(RedisLockService), log, witness, settings);

const running = new Set<Promise<void>>();
function start(work: Promise<void>): void {
  running.add(work);
  void work.finally(() => running.delete(work));
}

const verbs = {
  block({ ms }: { ms: number }): void {
    const until = machineNow() + ms;
    // Without work: a processor that it took would be missing where nothing is blocked.
    for (let left = ms; left > 0; left = until - machineNow()) Atomics.wait(NOBODY_WAKES, 0, 0, left);
  },
  async close(): Promise<void> {
    if (bench.isOver) return;
    log.say({ type: 'closing' });
    bench.isOver = true;
    stopTicking();
    await app.close();
    await Promise.all(running);
    bench.end();
    log.say({ type: 'closed' });
    process.removeAllListeners('SIGTERM').removeAllListeners('message').removeAllListeners('disconnect');
    process.disconnect();
    // Runs only if a handle keeps the process alive. Pipes lead to the process that started this one.
    const handles = (): string[] => process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap');
    setTimeout(() => log.say({ type: 'open', handles: handles() }), 1_000).unref();
  },
};

process.on('message', (command: Command) => void verbs[command.type](command as never));
process.on('SIGTERM', () => void verbs.close());
process.on('disconnect', () => process.exit());

isReady = true;
log.say({ type: 'started' });
process.send!('ready');
const stopTicking = settings.ticks ? tick(bench) : () => undefined;
if (settings.observes) start(observe(bench));
if (settings.campaigns) start(campaign(bench));
for (let i = 0; i < settings.callers; i++) start(call(bench));
