import type { LockEvent } from '../../../lib/kernel/events/events.js';
import { runTypescript } from '../../support/process/run-typescript.js';

interface Said {
  readonly leaked: Extract<LockEvent, { type: 'leaked' }>[];
  readonly warnings: string[];
  readonly next: string;
  readonly lost: Extract<LockEvent, { type: 'lost' }>[];
  readonly isKeptHeld: boolean;
}

const FORGOTTEN = ['forgotten', 'forgotten a', 'forgotten b', 'forgotten by an object', 'forgotten permit'];

describe('a lease that was forgotten', () => {
  const run = async (onLeak: 'warn' | 'expire'): Promise<Said> => {
    const main = new URL('./leaks-process-main.ts', import.meta.url);
    const { stdout, stderr } = await runTypescript(main, [onLeak], ['--expose-gc']);
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout) as Said;
  };

  // Both take seconds, and nearly all of them for a timer.
  let runs: Record<'warn' | 'expire', Said>;
  beforeAll(async () => {
    const [warn, expire] = await Promise.all([run('warn'), run('expire')]);
    runs = { warn, expire };
  });

  it('is reported once, with its call site, and still renewed', () => {
    const { leaked, warnings, next, lost, isKeptHeld } = runs.warn;
    expect(leaked.map(({ resource }) => resource).sort()).toEqual(FORGOTTEN);
    for (const { isRenewed, heldMs, callSite } of leaked) {
      expect(isRenewed).toBe(true);
      expect(heldMs).toBeGreaterThanOrEqual(500);
      expect(callSite).toMatch(/^(async )?(takeLocks|Importer\d*\.begin) \(.*:\d+:\d+\)$/);
    }
    expect(warnings).toHaveLength(FORGOTTEN.length);
    expect(warnings.find((warning) => warning.includes('"forgotten"'))).toMatch(
      /nothing references it any longer.* acquired at .*takeLocks .*renewed for as long as this process lives, so no other call gets the lock\..*finally/,
    );
    expect({ next, lost, isKeptHeld }).toEqual({ next: 'LOCK_TIMEOUT', lost: [], isKeptHeld: true });
  });

  it('expires if the application wants that, and no other lease does', () => {
    const { leaked, next, lost, isKeptHeld } = runs.expire;
    expect(leaked.map(({ resource }) => resource).sort()).toEqual(FORGOTTEN);
    expect(leaked.every(({ isRenewed }) => !isRenewed)).toBe(true);
    expect(lost).toMatchObject([{ resource: 'forgotten', reason: 'notRenewed' }]);
    expect({ next, isKeptHeld }).toEqual({ next: 'granted', isKeptHeld: true });
  });
});
