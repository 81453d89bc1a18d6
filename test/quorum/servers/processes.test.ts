import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { useProcesses } from '../../support/process/lock-process.js';
import { useServers } from '../../support/redis/quorum-servers.js';

const PROCESSES = 3;
const FOR_MS = 3_500;
/** Counts all processes, so that many are affected by faults. On a busy machine, this takes longer. */
const LEAST = 51;
const LEASE_MS = 1_000;

describe('processes that contend while nodes are killed and stopped', () => {
  const servers = useServers(5);
  const start = useProcesses(() => servers().map(({ url }) => url));
  const folder = mkdtempSync(join(tmpdir(), 'quorum-'));
  afterAll(() => rm(folder, { recursive: true }));

  it('never hold the lock at once, and their tokens grow', async () => {
    const file = join(folder, 'count');
    writeFileSync(file, '0');
    const processes = await Promise.all(Array.from({ length: PROCESSES }, () => start(LEASE_MS)));
    const work = Promise.all(
      processes.map((each) => each.ask('countInFile', 'stock', file, { callers: 2, forMs: FOR_MS, least: LEAST })),
    );
    let isOver = false;
    const trouble = (async () => {
      for (let round = 0; !isOver; round++) {
        // One that is empty when it comes back, only after the leases that it has forgotten have ended.
        const [killed, stopped] = [servers()[round % 5]!, servers()[(round + 2) % 5]!];
        await Promise.all([killed.kill(), stopped.pause()]);
        await sleep(LEASE_MS * 1.2);
        await Promise.all([killed.restart(), stopped.resume()]);
        await sleep(300);
      }
    })();
    const sections = (await work).flat();
    isOver = true;
    await trouble;
    sections.sort((a, b) => a.from - b.from);
    expect(sections.map(({ value }) => value)).toEqual(sections.map((_, index) => index));
    for (let i = 1; i < sections.length; i++) {
      expect(sections[i]!.from).toBeGreaterThanOrEqual(sections[i - 1]!.to);
      expect(sections[i]!.fencingToken).toBeGreaterThan(sections[i - 1]!.fencingToken);
    }
    expect(new Set(sections.map(({ fencingToken }) => fencingToken)).size).toBe(sections.length);
    expect(sections.length).toBeGreaterThanOrEqual(LEAST);
  });
});
