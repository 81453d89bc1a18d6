import type { Entry, Ticked } from '../../history/entries.js';
import { History } from '../../history/history.js';
import { tickRuns } from './tick-runs.js';

type Told = Partial<Ticked> & Pick<Ticked, 'process' | 'at' | 'phase' | 'token'>;

/** A tick of the job `report`, which has no reruns. */
function ticked(told: Told): Ticked {
  return { type: 'tick', job: 'report', tick: '10:00', onCrash: 'skip', rerun: false, until: told.at + 600, ...told };
}

/** A whole run: 10 ms, and the call comes back a millisecond later. */
function run(process: string, at: number, token: number, more: Partial<Ticked> = {}): Ticked[] {
  return (['start', 'end', 'done'] as const).map((phase, index) => {
    return ticked({ process, at: at + [0, 10, 11][index]!, phase, token, ...more });
  });
}

function whatIsWrong(...entries: Entry[]): string[] {
  return tickRuns(new History(entries)).violations.map(({ what }) => what.split(':')[0]!);
}

describe('the ticks of a job', () => {
  it('start once each', () => {
    const verdict = tickRuns(new History([...run('w1', 0, 32), ...run('w2', 100, 64, { tick: '10:01' })]));
    expect(verdict).toMatchObject({ looked: 2, violations: [] });
  });

  it('start twice where two processes run the same one', () => {
    expect(whatIsWrong(...run('w1', 0, 32), ...run('w2', 100, 64))).toContain('duplicate');
  });

  it('may be run again after the runner died, where the job says so', () => {
    const retry = { onCrash: 'retry' } as const;
    const cutShort = ticked({ process: 'w1', at: 0, phase: 'start', token: 32, ...retry });
    expect(whatIsWrong(cutShort, ...run('w2', 700, 64, { ...retry, rerun: true }))).toEqual([]);
  });

  it('may not be run again where the first run was whole', () => {
    const retry = { onCrash: 'retry' } as const;
    expect(whatIsWrong(...run('w1', 0, 32, retry), ...run('w2', 700, 64, { ...retry, rerun: true }))).toEqual([
      'rerun of a whole run',
    ]);
  });

  it('may start twice where Redis lost its data in between: that is shown', () => {
    const fault = { type: 'fault', id: 1, kind: 'restart', victims: ['w1', 'w2'], breaksPromises: true } as const;
    const verdict = tickRuns(
      new History([
        ...run('w1', 0, 32),
        { ...fault, process: 'chaos', at: 50, phase: 'begin' },
        { ...fault, process: 'chaos', at: 60, phase: 'healed' },
        ...run('w2', 100, 64),
      ]),
    );
    expect(verdict.violations).toEqual([]);
    expect(verdict.shown!.map(({ what }) => what.split(':')[0])).toEqual(['duplicate', 'rerun of a whole run']);
  });
});
