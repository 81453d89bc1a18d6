import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Lease } from '../../../../../lib/kernel/api/lease.js';
import { runGuarded } from '../../../../../lib/extras/cli/exec/guarded-command.js';
import { PassedSignals } from '../../../../../lib/extras/cli/exec/passed-signals.js';

const folder = mkdtempSync(join(tmpdir(), 'guarded-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs for longer than a test needs, and not for ever where nothing ends it: it would keep Jest waiting. */
const RUNS_ON = 'setTimeout(() => {}, 30_000);';

/** A lease as far as a command under it needs one. */
function leaseWith(remainingMs: () => number): Lease {
  const lease = {
    resource: 'unit',
    fencingToken: 7,
    signal: new AbortController().signal,
    isHeld: () => remainingMs() > 0,
    remainingMs,
  };
  return lease as unknown as Lease;
}

async function runUnder(lease: Lease, code: string, killAfterMs = 1_000) {
  const notes: string[] = [];
  const note = (line: string): void => void notes.push(line);
  const signals = new PassedSignals(note);
  const command = [process.execPath, '-e', code];
  const run = { command, lease, leaseMs: 9_000, killAfterMs, signals, note };
  const end = await runGuarded(run).finally(() => signals.close());
  return { ...end, notes };
}

it('a command is not started if the lease has ended before', async () => {
  const code = `require('fs').writeFileSync(${JSON.stringify(join(folder, 'ran'))}, '')`;
  await expect(
    runUnder(
      leaseWith(() => 0),
      code,
    ),
  ).resolves.toMatchObject({ code: undefined, isLost: true });
  expect(readdirSync(folder)).toEqual([]);
});

it('a command gets SIGTERM while its lease is still valid, and SIGKILL when that ends', async () => {
  const endsAt = performance.now() + 6_000;
  let killedAt = 0;
  const code = `process.on('SIGTERM', () => {}); ${RUNS_ON}`;
  const { notes, ...end } = await runUnder(
    leaseWith(() => Math.max(0, endsAt - performance.now())),
    code,
  ).finally(() => (killedAt = performance.now()));
  expect(end).toEqual({ code: 137, isLost: true, isInterrupted: false });
  expect(killedAt).toBeGreaterThan(endsAt - 50);
  expect(notes).toEqual([expect.stringMatching(/"unit" ends in .*, and could not be renewed.*SIGTERM/)]);
});

it('a command that ended while this process was blocked is lost, although the lease is renewed since', async () => {
  let looks = 0;
  const { notes, ...end } = await runUnder(
    // Leaves little time before the command starts.
    {
      ...leaseWith(() => (++looks === 1 ? 60_100 : 90_000)),
      // The guard would check again if the event loop were not blocked.
      isHeld: () => looks === 0,
    },
    RUNS_ON,
    60_000,
  );
  expect(end).toEqual({ code: 143, isLost: true, isInterrupted: false });
  expect(notes).toEqual([
    expect.stringMatching(/^exec was blocked .*"unit", so the command was ended before the lease expired/),
  ]);
});

it('a command that was started only after its lease had ended is stopped, because this process was blocked', async () => {
  let looks = 0;
  const lease = {
    ...leaseWith(() => (++looks === 1 ? 60_100 : 90_000)),
    isHeld: () => looks === 0,
    // Read once the guard knows about the lease, and before it knows about the command.
    get resource() {
      if (looks === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
      return 'unit';
    },
  };
  const { notes: _notes, ...end } = await runUnder(lease, RUNS_ON, 60_000);
  expect(end).toEqual({ code: 143, isLost: true, isInterrupted: false });
});

it('a command that ends while its lease is renewed is not lost', async () => {
  const { code, isLost, notes } = await runUnder(
    leaseWith(() => 2_900),
    'setTimeout(() => process.exit(3), 500)',
  );
  expect({ code, isLost, notes }).toEqual({ code: 3, isLost: false, notes: [] });
});
