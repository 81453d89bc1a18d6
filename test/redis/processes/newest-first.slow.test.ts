import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

const REQUESTS = process.env['TEST_SPEED'] === 'long' ? 1_000 : 160;
/** One holder is killed in the middle of each quarter. */
const KILL_EVERY = REQUESTS / 4;
const PROCESSES = 3;
const EVERY_MS = 10;
/** Longer than the time between two requests: nearly every render is replaced before it has ended. */
const RENDER_MS = 40;
const LEASE_MS = 1_000;

/** The notes of the processes, in the order of Redis. */
interface Note {
  readonly what: 'begin' | 'store' | 'end' | 'killed';
  readonly token: number;
  readonly pid: number;
  readonly request: number;
}

describe('only the newest of many requests counts, in three processes', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  const notes = async (): Promise<Note[]> =>
    (await admin().lrange('log', '0', '-1')).map((line) => {
      const [what, token, pid, request] = line.split(' ');
      return { what: what as Note['what'], token: Number(token), pid: Number(pid), request: Number(request) };
    });

  /** One begins after another has ended, or its process was killed; each with a larger token. */
  function expectNeverTwo(log: readonly Note[]): void {
    let inside: Note | undefined;
    let token = 0;
    for (const note of log) {
      if (note.what === 'begin') {
        expect({ beside: inside }).toEqual({ beside: undefined });
        expect(note.token).toBeGreaterThan(token);
        token = note.token;
        inside = note;
      } else if (note.what === 'killed') {
        if (inside?.pid === note.pid) inside = undefined;
      } else {
        expect(inside).toMatchObject({ token: note.token, pid: note.pid });
        if (note.what === 'end') inside = undefined;
      }
    }
  }

  const replace = async (processes: LockProcess[]): Promise<void> => void processes.push(await startProcess(LEASE_MS));

  /** @param beforeRequest called with the number of the next request */
  async function run(
    processes: LockProcess[],
    beforeRequest: (request: number) => Promise<void> = async () => {},
  ): Promise<Record<string, number>> {
    const outcomes: Promise<string>[] = [];
    const render = (request: number): void => {
      const asked = processes[request % processes.length]!.ask('render', 'page', request, RENDER_MS);
      outcomes.push(asked.catch(() => 'killed'));
    };
    const began = Date.now();
    let longestQueue = 0;
    for (let request = 1; request < REQUESTS; request++) {
      await beforeRequest(request);
      render(request);
      if (request % 50 === 0) longestQueue = Math.max(longestQueue, await admin().zcard('lock:{page}:waiters'));
      await sleep(Math.max(0, began + request * EVERY_MS - Date.now()));
    }
    // So that it is known which one is the newest.
    await Promise.all(processes.map((each) => each.ask('caughtUp', 'page')));
    render(REQUESTS);
    const counts: Record<string, number> = {};
    for (const outcome of await Promise.all(outcomes)) counts[outcome] = (counts[outcome] ?? 0) + 1;
    // Three members for each place: callers that have just given up may still be there.
    expect(longestQueue).toBeLessThanOrEqual(3 * 2 * PROCESSES);
    expect(await outcomes.at(-1)).toBe('stored');
    expect(await admin().get('result')).toBe(String(REQUESTS));
    return counts;
  }

  it('also when holders are killed', async () => {
    const processes = await Promise.all([1, 2, 3].map(() => startProcess(LEASE_MS)));
    const replacing: Promise<void>[] = [];
    let killed = 0;
    const counts = await run(processes, async (request) => {
      if (request % KILL_EVERY !== Math.floor(KILL_EVERY / 2)) return;
      // Replacements of killed processes have taken their places.
      await Promise.all(replacing);
      // One that is at work, if it can be seen.
      const pid = (await notes()).at(-1)?.pid;
      const index = Math.max(
        0,
        processes.findIndex(({ child }) => child.pid === pid),
      );
      const victim = processes[index]!;
      await victim.kill();
      killed++;
      await admin().rpush('log', `killed 0 ${victim.child.pid} 0`);
      processes.splice(index, 1);
      replacing.push(replace(processes));
    });
    await Promise.all(replacing);
    expect(killed).toBe(4);
    const log = await notes();
    expectNeverTwo(log);
    expect(log.filter(({ what }) => what === 'store').at(-1)!.request).toBe(REQUESTS);
    expect(counts.stored! + counts.superseded! + (counts.killed ?? 0)).toBe(REQUESTS);
    await eventually(async () => expect(await admin().exists('lock:{page}', 'lock:{page}:waiters')).toBe(0));
  });
});
