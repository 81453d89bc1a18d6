import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../../support/expect/eventually.js';
import { machineNow } from '../../../support/expect/machine-now.js';
import { useAdmin } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { SeededRandom } from '../../../support/world/seeded-random.js';
import { ENDED, type OnceProcess, useOnceProcesses } from './once-process.js';
import type { Answered, Run } from './once-process-main.js';

const CALLS = 10_000;
const KEYS = 500;
const PROCESSES = 5;
/** The calls that a process makes at once. */
const AT_ONCE = 100;
const KILL_EVERY_MS = 2_000;
/** Shorter than the whole run, so that each key is worked on several times. */
const TTL_MS = 8_000;
const WORK_MS = 30;
/** Longer than the event loop of a process is blocked on a busy machine. */
const LEASE_MS = 4_000;
/** Redis counts whole milliseconds, by its own clock. */
const SLACK_MS = 5;

describe('once in several processes', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useOnceProcesses(() => redis().url);

  const runsOf = async (key: string): Promise<{ begun: Run[]; ended: Map<string, Run> }> => {
    const read = async (list: string) =>
      (await admin().lrange(`${list}:${key}`, 0, -1)).map((line) => JSON.parse(line) as Run);
    const [begun, ended] = await Promise.all([read('begun'), read('ended')]);
    return { begun, ended: new Map(ended.map((run) => [run.id, run])) };
  };

  it(`completes the work of each key once for each TTL, with ${CALLS} calls in ${PROCESSES} processes of which one is killed every 2 s`, async () => {
    const random = new SeededRandom(55);
    const killedAt = new Map<number, number>();
    const answered: Answered[] = [];
    const fleet = await Promise.all(Array.from({ length: PROCESSES }, () => start(LEASE_MS)));
    let isOver = false;
    const replaced = Array.from({ length: PROCESSES }, () => Promise.resolve());

    const killing = (async () => {
      for (let turn = 0; !isOver; turn++) {
        await sleep(KILL_EVERY_MS);
        if (isOver) return;
        const index = turn % PROCESSES;
        const victim = fleet[index]!;
        killedAt.set(victim.pid, machineNow());
        await victim.kill();
        replaced[index] = start(LEASE_MS).then((next) => void (fleet[index] = next));
      }
    })();
    const caller = async (index: number): Promise<void> => {
      while (answered.length < CALLS && !isOver) {
        await replaced[index];
        const keys = Array.from({ length: AT_ONCE }, () => `key:${Math.floor(random.fraction() * KEYS)}`);
        const asked = (fleet[index] as OnceProcess).ask('calls', keys, { resultTtlMs: TTL_MS, workMs: WORK_MS });
        const answers = await asked.catch((error: Error) => {
          if (error.message !== ENDED) throw error;
          return [];
        });
        answered.push(...answers);

        // Long enough that results expire, and processes die.
        await sleep(random.fraction() * 2_000);
      }
    };
    try {
      await Promise.all(fleet.map((_, index) => caller(index)));
    } finally {
      isOver = true;
      await killing;
      await Promise.all(replaced);
    }

    const texts = new Map<string, Run>();
    // Not kept, as their callers know.
    const lost = new Set(answered.filter(({ outcome }) => outcome === 'lost').map(({ text }) => text));
    let [begunRuns, unfinished] = [0, 0];
    for (let number = 0; number < KEYS; number++) {
      const { begun, ended } = await runsOf(`key:${number}`);
      begunRuns += begun.length;
      for (const run of ended.values()) texts.set(run.text!, run);
      for (const [index, run] of begun.entries()) {
        const { endedAt: end, text } = ended.get(run.id) ?? {};
        const next = begun[index + 1];
        const wasKilled = killedAt.has(run.pid);
        if (end === undefined) {
          unfinished++;
          expect({ run, wasKilled }).toMatchObject({ wasKilled: true });
        }
        if (next === undefined || lost.has(text!)) continue;
        // One at a time, and again only after the TTL, or because its process was killed.
        if (end !== undefined) expect(next.beganAt).toBeGreaterThanOrEqual(end - SLACK_MS);
        if (!wasKilled) expect(next.beganAt - end!).toBeGreaterThanOrEqual(TTL_MS - SLACK_MS);
        else expect(next.beganAt).toBeGreaterThan(run.beganAt);
      }
    }
    // Byte by byte what a run has made of this key.
    for (const { key, text } of answered) expect([key, texts.has(text)]).toEqual([key, true]);
    expect(killedAt.size).toBeGreaterThan(2);
    const outcomes = new Set(answered.map(({ outcome }) => outcome));
    expect([...outcomes]).toEqual(expect.arrayContaining(['run', 'hit', 'wait']));

    if (process.env['ONCE_FIGURES']) {
      const count = (outcome: string) => answered.filter((each) => each.outcome === outcome).length;
      const late = answered
        .filter(({ outcome }) => outcome === 'wait')
        .map(({ text, returnedAt }) => returnedAt - texts.get(text)!.endedAt!)
        .sort((a, b) => a - b);
      const at = (part: number) => late[Math.min(late.length - 1, Math.floor(part * late.length))]?.toFixed(1);
      process.stdout.write(
        `calls ${answered.length}, run ${count('run')}, hit ${count('hit')}, wait ${count('wait')}; runs begun ` +
          `${begunRuns}, not ended ${unfinished}; killed ${killedAt.size}; lost ${lost.size}; a waiter returned after the end of the work: ` +
          `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms\n`,
      );
    }
  }, 300_000);

  it('costs one GET for each call of a kept result, and no other command', async () => {
    const one = await start(60_000);
    const options = { resultTtlMs: 600_000, workMs: 0 };
    await one.ask('calls', ['hot'], options);
    await admin().config('RESETSTAT');
    await one.ask('calls', Array<string>(1_000).fill('hot'), options);
    const stats = await admin().info('commandstats');
    const calls = new Map([...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(([, name, n]) => [name, Number(n)]));
    expect(calls.get('get')).toBe(1_000);
    expect([...calls.keys()].filter((name) => !/^(get|info|config\|resetstat)$/.test(name!))).toEqual([]);
  }, 60_000);

  it('keeps nothing of a process that was stopped for longer than its lease and the result of another one', async () => {
    const [stopped, other] = [await start(500), await start(500)];
    const late = stopped.ask('call', 'report', { resultTtlMs: 60_000, workMs: 200 });
    await eventually(async () => expect(await admin().llen('begun:report')).toBe(1));
    stopped.child.kill('SIGSTOP');
    await other.ask('call', 'report', { resultTtlMs: 100, workMs: 0 });
    await eventually(async () => expect(await admin().exists('lock:{once:report}:result')).toBe(0));
    stopped.child.kill('SIGCONT');
    expect(await late).toBe('LeaseLostError');
    expect(await admin().exists('lock:{once:report}:result', 'lock:{once:report}')).toBe(0);
  }, 60_000);
});
